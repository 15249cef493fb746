//! The entries that a group appended last, in memory: who sends them to peers or applies them right afterwards need not
//! have RocksDB search, copy and check them once for each.
//!
//! Not here: any say in what the log is. Invariants: what is here is a run of entries without a hole, each as the store
//! has it. It is never more than a number of bytes and entries of one group, and of bytes of all groups of a node (G10),
//! but for the newest entry of each group, however large. Stored bytes are counted: an entry that came from a leader is a
//! slice of the message it came in and keeps all of that alive, so that small ones may hold more memory than is counted;
//! hence the limit of entries.

use crate::frame;
use crate::types::{Entry, Payload};
use bytes::Bytes;
use openraft::EntryPayload;
use petuum_types::limits;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that all groups of a node may keep. A group that finds them used up forgets its older entries, and whoever
/// wants those asks the store.
#[derive(Debug)]
pub(crate) struct Room {
    used: AtomicUsize,
    max: usize,
}

impl Room {
    pub(crate) const fn new(max: usize) -> Self {
        Self { used: AtomicUsize::new(0), max }
    }

    fn is_used_up(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.max
    }
}

/// The newest entries of one group's log.
#[derive(Debug)]
pub(crate) struct Recent {
    /// With the bytes of their stored forms.
    entries: VecDeque<(Entry, usize)>,
    bytes: usize,
    bytes_max: usize,
    room: Arc<Room>,
}

impl Drop for Recent {
    fn drop(&mut self) {
        self.clear();
    }
}

impl Recent {
    pub(crate) fn new(bytes_max: usize, room: Arc<Room>) -> Self {
        Self { entries: VecDeque::new(), bytes: 0, bytes_max, room }
    }

    /// Takes an entry that was appended, with its stored form, which whoever reads it here is given too.
    pub(crate) fn push(&mut self, mut entry: Entry, stored: Bytes) {
        let bytes = stored.len();
        if let EntryPayload::Normal(payload) = &mut entry.payload {
            *payload = Payload { bytes: stored.slice(frame::HEADER_BYTES..), stored: Some(stored) };
        }
        let last = self.entries.back().map(|(last, _)| last.log_id.index);
        if last.is_some_and(|last| last + 1 != entry.log_id.index) {
            self.clear();
        }
        self.entries.push_back((entry, bytes));
        self.bytes += bytes;
        self.room.used.fetch_add(bytes, Ordering::Relaxed);
        while self.entries.len() > 1 && self.is_too_much() {
            self.forget_first();
        }
    }

    fn is_too_much(&self) -> bool {
        self.bytes > self.bytes_max || self.entries.len() > limits::RECENT_ENTRIES_MAX || self.room.is_used_up()
    }

    /// The log ends with this entry now.
    pub(crate) fn truncate_after(&mut self, last_kept: Option<u64>) {
        while let Some((last, bytes)) = self.entries.back()
            && last_kept.is_none_or(|kept| last.log_id.index > kept)
        {
            let bytes = *bytes;
            self.give_back(bytes);
            self.entries.pop_back();
        }
    }

    /// The log begins behind this entry now.
    pub(crate) fn purge(&mut self, upto: u64) {
        while self.entries.front().is_some_and(|(first, _)| first.log_id.index <= upto) {
            self.forget_first();
        }
    }

    /// The entries `from..end`, at least one and then as many as stay within `max_bytes`; fewer if the log ends. `None` if
    /// the first is not here: the store has to be asked.
    pub(crate) fn read(&self, from: u64, end: u64, max_bytes: usize) -> Option<Vec<Entry>> {
        let first = self.entries.front()?.0.log_id.index;
        let skipped = usize::try_from(from.checked_sub(first)?).ok()?;
        let mut bytes = 0usize;
        let mut found = Vec::new();
        for (entry, size) in self.entries.iter().skip(skipped).take_while(|(entry, _)| entry.log_id.index < end) {
            bytes = bytes.saturating_add(*size);
            if bytes > max_bytes && !found.is_empty() {
                break;
            }
            found.push(entry.clone());
        }
        (!found.is_empty()).then_some(found)
    }

    fn forget_first(&mut self) {
        if let Some((_, bytes)) = self.entries.pop_front() {
            self.give_back(bytes);
        }
    }

    fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.room.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn clear(&mut self) {
        self.entries.clear();
        self.give_back(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{CommittedLeader, LogId};

    fn alone(bytes_max: usize) -> Recent {
        Recent::new(bytes_max, Arc::new(Room::new(usize::MAX)))
    }

    /// 100 bytes of body: 124 as stored.
    fn push(recent: &mut Recent, index: u64) {
        let log_id = LogId { leader_id: CommittedLeader::new(1), index };
        let body = Bytes::from(vec![u8::try_from(index).unwrap(); 100]);
        let entry = Entry { log_id, payload: EntryPayload::Normal(Payload::new(body)) };
        let stored = frame::encode(&entry);
        recent.push(entry, stored);
    }

    fn indices(recent: &Recent, from: u64, end: u64, max_bytes: usize) -> Option<Vec<u64>> {
        Some(recent.read(from, end, max_bytes)?.iter().map(|entry| entry.log_id.index).collect())
    }

    #[test]
    fn a_run_is_read_as_the_store_would() {
        let mut recent = alone(10_000);
        (5..9).for_each(|index| push(&mut recent, index));
        assert_eq!(indices(&recent, 6, 8, usize::MAX), Some(vec![6, 7]));
        assert_eq!(indices(&recent, 6, 100, usize::MAX), Some(vec![6, 7, 8]));
        assert_eq!(indices(&recent, 5, 9, 300), Some(vec![5, 6]));
        assert_eq!(indices(&recent, 5, 9, 1), Some(vec![5]), "one entry however large");
        for (from, end) in [(4, 9), (9, 12), (6, 6)] {
            assert_eq!(indices(&recent, from, end, usize::MAX), None, "{from}..{end} is the store's to answer");
        }
    }

    #[test]
    fn what_is_read_is_what_was_stored_and_is_not_encoded_again() {
        let mut recent = alone(10_000);
        push(&mut recent, 7);
        let read = recent.read(7, 8, usize::MAX).unwrap().remove(0);
        let (first, second) = (frame::encode(&read), frame::encode(&read));
        assert_eq!(first.as_ptr(), second.as_ptr());
        assert_eq!(frame::decode(7, &first).unwrap(), read);
    }

    #[test]
    fn g10_the_oldest_go_when_bytes_or_entries_are_too_many_and_one_stays() {
        let mut recent = alone(300);
        (0..5).for_each(|index| push(&mut recent, index));
        assert_eq!((indices(&recent, 3, 5, usize::MAX), recent.bytes), (Some(vec![3, 4]), 248));
        assert_eq!(indices(&recent, 2, 5, usize::MAX), None);
        let mut tiny = alone(1);
        (0..2).for_each(|index| push(&mut tiny, index));
        assert_eq!(indices(&tiny, 1, 2, usize::MAX), Some(vec![1]));
    }

    #[test]
    fn g10_groups_share_a_node_s_room_and_keep_their_newest_without_any() {
        let room = Arc::new(Room::new(400));
        let [mut first, mut second] = [(); 2].map(|()| Recent::new(10_000, room.clone()));
        (0..3).for_each(|index| push(&mut first, index));
        (0..3).for_each(|index| push(&mut second, index));
        assert_eq!(indices(&first, 0, 3, usize::MAX), Some(vec![0, 1, 2]), "it was here first");
        assert_eq!((indices(&second, 1, 3, usize::MAX), indices(&second, 2, 3, usize::MAX)), (None, Some(vec![2])));
        first.purge(1);
        (3..5).for_each(|index| push(&mut second, index));
        assert_eq!(indices(&second, 3, 5, usize::MAX), Some(vec![3, 4]), "the room that was given back");
        first.truncate_after(None);
        drop(second);
        assert_eq!(room.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn truncated_and_purged_entries_are_gone_and_a_jump_begins_a_new_run() {
        let mut recent = alone(10_000);
        (0..6).for_each(|index| push(&mut recent, index));
        recent.truncate_after(Some(3));
        recent.purge(1);
        assert_eq!(indices(&recent, 2, 9, usize::MAX), Some(vec![2, 3]));
        assert_eq!(indices(&recent, 1, 9, usize::MAX), None);
        push(&mut recent, 4);
        push(&mut recent, 20);
        assert_eq!((indices(&recent, 2, 9, usize::MAX), recent.bytes), (None, 124));
        recent.truncate_after(None);
        assert_eq!((indices(&recent, 20, 21, usize::MAX), recent.bytes), (None, 0));
    }
}
