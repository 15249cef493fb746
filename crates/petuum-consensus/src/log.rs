//! A group's log and vote in the node's store, as openraft wants them. It decides nothing; what it knows is in which
//! form and which record things are kept, and when openraft may be told that they are durable.
//!
//! Invariants: votes and entries reach the one WAL in the order openraft writes them; a callback says durable only
//! after a sync that began later than the write; a hole is an error, never skipped, or a leader would send a log with a
//! gap; a reader returns at least one entry however large it is, and else at most a frame. What was appended last is also
//! kept in memory, for those who read it next; a store that failed or is closed answers nothing from there either (P22).

use crate::frame;
use crate::recent::{Recent, Room};
use crate::record::{Ballot, decode_position, encode_position};
use crate::types::{Entry, LogId, Types, Vote};
use bytes::Bytes;
use futures::{Stream, stream};
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};
use petuum_chaos::{Buggify, Failpoint, Mutant, clumsy, mutated, reached};
use petuum_storage::{Error, GroupStore, Record};
use petuum_types::{codec, limits};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::oneshot;

/// Bytes of entries read at once to be applied.
const APPLY_READ_BYTES: usize = 4 * 1024 * 1024;

/// A group's log. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct LogStore {
    store: GroupStore,
    frame_bytes: usize,
    recent: Arc<Mutex<Recent>>,
}

pub(crate) fn io_error(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::other(error)
}

fn half_open(range: &impl RangeBounds<u64>) -> (u64, u64) {
    let from = match range.start_bound() {
        Bound::Included(from) => *from,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => *end,
        Bound::Unbounded => u64::MAX,
    };
    (from, end)
}

impl LogStore {
    pub(crate) fn new(store: GroupStore, frame_bytes: usize, room: Arc<Room>) -> Self {
        Self { store, frame_bytes, recent: Arc::new(Mutex::new(Recent::new(limits::RECENT_BYTES_MAX, room))) }
    }

    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.recent.lock().expect("nothing panics while it is held")
    }

    /// Entries that are still in memory, if the first of the range is.
    fn read_recent(&self, from: u64, end: u64, max_bytes: usize) -> io::Result<Option<Vec<Entry>>> {
        let found = self.recent().read(from, end, max_bytes);
        // Behind the read, as what was found may be of a sync that failed meanwhile (P22).
        self.store.check().map_err(io_error)?;
        Ok(found)
    }

    fn malformed(&self, index: u64, error: &frame::Malformed) -> io::Error {
        let (dir, group) = (self.store.store().dir().display(), self.store.id());
        io_error(format!(
            "{dir}: entry {index} of {group} is damaged: {error}; leave this node stopped, this version cannot repair it \
             from its peers yet"
        ))
    }

    fn decode(&self, stored: Vec<(u64, Bytes)>) -> io::Result<Vec<Entry>> {
        let decode =
            |(index, bytes): (u64, Bytes)| frame::decode(index, &bytes).map_err(|error| self.malformed(index, &error));
        stored.into_iter().map(decode).collect()
    }

    /// Whatever the log has of a range, up to a number of bytes: it may begin behind the range's beginning and end
    /// before its end.
    fn read_present(&self, from: u64, end: u64, max_bytes: usize) -> io::Result<Vec<Entry>> {
        if let Some(entries) = self.read_recent(from, end, max_bytes)? {
            return Ok(entries);
        }
        let Some(first) = self.store.first().map_err(io_error)? else { return Ok(Vec::new()) };
        match self.store.read(from.max(first), end, max_bytes) {
            Ok(stored) => self.decode(stored),
            // Nothing there and nothing behind it: the range lies behind the log's end.
            Err(Error::Hole { found: None, .. }) => Ok(Vec::new()),
            Err(error) => Err(io_error(error)),
        }
    }

    fn last_id(&self) -> io::Result<Option<LogId>> {
        let Some((index, bytes)) = self.store.last().map_err(io_error)? else { return Ok(None) };
        frame::decode_id(&bytes).map(Some).map_err(|error| self.malformed(index, &error))
    }

    fn purged_id(&self) -> io::Result<Option<LogId>> {
        match self.store.purged().map_err(io_error)? {
            None => Ok(None),
            Some((_, marker)) => decode_position(&marker).map_err(io_error),
        }
    }
}

impl RaftLogReader<Types> for LogStore {
    async fn entries_stream<RB>(&mut self, range: RB) -> impl Stream<Item = io::Result<Entry>> + OptionalSend
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        // Read in steps: what has gathered while a machine was slow may be larger than memory. openraft wants the end
        // of the log to be the end of the stream; that all of what was committed came, the machine's adapter sees by
        // the next index.
        let (from, end) = half_open(&range);
        let log = self.clone();
        let step = move |(next, mut ready): (u64, std::vec::IntoIter<Entry>)| {
            let log = log.clone();
            async move {
                if ready.len() == 0 && next < end {
                    ready = log.read_present(next, end, APPLY_READ_BYTES)?.into_iter();
                }
                Ok(ready.next().map(|entry| {
                    let behind = entry.log_id.index + 1;
                    (entry, (behind, ready))
                }))
            }
        };
        Box::pin(stream::try_unfold((from, Vec::new().into_iter()), step))
    }

    async fn try_get_log_entries<RB>(&mut self, range: RB) -> io::Result<Vec<Entry>>
    where
        RB: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let (from, end) = half_open(&range);
        if from >= end {
            return Ok(Vec::new());
        }
        self.read_present(from, end, usize::MAX)
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        let Some(bytes) = self.store.get_record(Record::Vote).map_err(io_error)? else { return Ok(None) };
        let ballot: Ballot = codec::decode(&bytes).map_err(io_error)?;
        Ok(Some(ballot.into()))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> io::Result<Vec<Entry>> {
        let frame_bytes = if clumsy(Buggify::FrameOfOneEntry) { 1 } else { self.frame_bytes };
        if let Some(entries) = self.read_recent(start, end, frame_bytes)? {
            return Ok(entries);
        }
        self.decode(self.store.read(start, end, frame_bytes).map_err(io_error)?)
    }
}

impl RaftLogStorage<Types> for LogStore {
    type LogReader = Self;

    async fn get_log_state(&mut self) -> io::Result<LogState<Types>> {
        let last_purged_log_id = self.purged_id()?;
        let last_log_id = self.last_id()?.or(last_purged_log_id);
        Ok(LogState { last_purged_log_id, last_log_id })
    }

    async fn get_log_reader(&mut self) -> Self::LogReader {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        reached(Failpoint::VoteBefore);
        if mutated(Mutant::VoteNotPersisted) {
            return Ok(());
        }
        let record = codec::encode(&Ballot::from(vote));
        durably(|done| self.store.put_record(Record::Vote, &record, Some(done))).await?;
        reached(Failpoint::VoteAfter);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        // Not waited for: after a crash an older one means only that less is applied before the group is heard.
        self.store.put_record(Record::Committed, &encode_position(committed.as_ref()), None).map_err(io_error)
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        match self.store.get_record(Record::Committed).map_err(io_error)? {
            None => Ok(None),
            Some(bytes) => decode_position(&bytes).map_err(io_error),
        }
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> io::Result<()>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let with_stored = |entry: Entry| {
            let stored = frame::encode(&entry);
            (entry, stored)
        };
        let framed: Vec<(Entry, Bytes)> = entries.into_iter().map(with_stored).collect();
        let done = Box::new(move |outcome: Result<(), Error>| callback.io_completed(outcome.map_err(io_error)));
        let stored = framed.iter().map(|(entry, stored)| (entry.log_id.index, stored));
        reached(Failpoint::AppendBeforeWrite);
        self.store.append(stored, done).map_err(io_error)?;
        reached(Failpoint::AppendAfterWrite);
        // Only what the store has taken.
        let mut recent = self.recent();
        framed.into_iter().for_each(|(entry, stored)| recent.push(entry, stored));
        Ok(())
    }

    async fn truncate_after(&mut self, last_kept: Option<LogId>) -> io::Result<()> {
        reached(Failpoint::TruncateBefore);
        // Here first, so that nobody is given from memory what the store no longer has.
        self.recent().truncate_after(last_kept.map(|id| id.index));
        self.store.truncate_after(last_kept.map(|id| id.index)).map_err(io_error)?;
        reached(Failpoint::TruncateAfter);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> io::Result<()> {
        reached(Failpoint::PurgeBefore);
        self.recent().purge(upto.index);
        self.store.purge(upto.index, &encode_position(Some(&upto))).map_err(io_error)?;
        reached(Failpoint::PurgeAfter);
        Ok(())
    }
}

/// Writes, and waits until what was written is durable.
pub(crate) async fn durably(
    write: impl FnOnce(petuum_storage::SyncDone) -> Result<(), Error> + Send,
) -> io::Result<()> {
    let (sender, durable) = oneshot::channel();
    // The receiver is gone only if the caller gave up; nobody is left to be told then.
    write(Box::new(move |outcome| drop(sender.send(outcome)))).map_err(io_error)?;
    durable.await.expect("the store calls back exactly once").map_err(io_error)
}
