//! When a group's state is saved and how much of its log is kept: by entries and by bytes, which openraft's own
//! policies do not count. Bookkeeping only; `compactor` acts on it.
//!
//! Invariants: nothing is purged that a snapshot in transfer is followed by (its receiver needs exactly that next);
//! both `log_kept_entries` and `log_kept_bytes` stay; bookkeeping is bounded.

use crate::settings::Settings;
use crate::types::SnapshotMeta;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

/// Entries between two marks, at first.
const MARK_ENTRIES: u64 = 64;
/// Marks kept; beyond it every second one goes.
const MARKS_MAX: usize = 8192;
#[derive(Default)]
struct State {
    last: Option<u64>,
    /// Applied since the last snapshot was begun.
    entries: u64,
    bytes: u64,
    /// All bytes ever applied here.
    total: u64,
    /// (index, all bytes up to and with it), ascending.
    marks: VecDeque<(u64, u64)>,
    mark_every: u64,
    /// Last index of the published snapshot.
    saved: Option<u64>,
    /// Last index of each snapshot in transfer.
    transfers: BTreeMap<u64, u64>,
    next_transfer: u64,
    /// Told when the build that was asked for ends.
    waiting: Option<oneshot::Sender<()>>,
    asked: bool,
}

/// A group's bookkeeping.
pub(crate) struct Compaction {
    after_entries: u64,
    after_bytes: u64,
    kept_entries: u64,
    kept_bytes: u64,
    state: Mutex<State>,
    pub(crate) due: Notify,
    pub(crate) begun: Notify,
}

impl Compaction {
    /// `draw` spreads the thresholds of groups and nodes.
    pub(crate) fn new(settings: &Settings, draw: u64) -> Self {
        let spread = |after: u64| after.saturating_add(draw % (after / 4).max(1));
        Self {
            after_entries: spread(settings.snapshot_after_entries),
            after_bytes: spread(settings.snapshot_after_bytes),
            kept_entries: settings.log_kept_entries,
            kept_bytes: settings.log_kept_bytes,
            state: Mutex::new(State { mark_every: MARK_ENTRIES, ..State::default() }),
            due: Notify::new(),
            begun: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }

    /// A machine begins anew, empty.
    pub(crate) fn restart(&self) {
        let mut state = self.state();
        let (transfers, next_transfer) = (std::mem::take(&mut state.transfers), state.next_transfer);
        *state = State { mark_every: MARK_ENTRIES, transfers, next_transfer, ..State::default() };
    }

    /// The last index applied.
    pub(crate) fn last(&self) -> Option<u64> {
        self.state().last
    }

    /// Counts an applied entry.
    pub(crate) fn applied(&self, index: u64, bytes: usize) {
        let mut state = self.state();
        state.last = Some(index);
        state.entries += 1;
        state.bytes += bytes as u64;
        state.total += bytes as u64;
        if state.marks.back().is_none_or(|(marked, _)| index >= marked + state.mark_every) {
            let mark = (index, state.total);
            state.marks.push_back(mark);
        }
        if state.marks.len() > MARKS_MAX {
            let mut keep = false;
            state.marks.retain(|_| {
                keep = !keep;
                keep
            });
            state.mark_every *= 2;
        }
        let due = state.entries >= self.after_entries || state.bytes >= self.after_bytes;
        drop(state);
        if due {
            self.due.notify_one();
        }
    }

    /// Asks for a snapshot, whatever the thresholds.
    pub(crate) fn ask(&self) {
        self.state().asked = true;
        self.due.notify_one();
    }

    /// A build begins with the state as of now. Keep the answer until it ends.
    pub(crate) fn begin_build(&self) -> Option<oneshot::Sender<()>> {
        let mut state = self.state();
        (state.entries, state.bytes, state.asked) = (0, 0, false);
        let ended = state.waiting.take();
        drop(state);
        self.begun.notify_one();
        ended
    }

    /// A snapshot was published.
    pub(crate) fn saved(&self, meta: &SnapshotMeta) {
        let mut state = self.state();
        state.saved = state.saved.max(meta.last_log_id.map(|id| id.index));
    }

    /// The state was replaced by a snapshot: whatever was known of the log before it is void.
    pub(crate) fn installed(&self, meta: &SnapshotMeta) {
        let mut state = self.state();
        (state.entries, state.bytes) = (0, 0);
        state.marks.clear();
        state.last = meta.last_log_id.map(|id| id.index);
        state.saved = state.last;
    }

    /// Last index of the published snapshot.
    pub(crate) fn saved_index(&self) -> Option<u64> {
        self.state().saved
    }

    /// Keeps the log behind `index` until the answer is dropped.
    pub(crate) fn hold(self: &Arc<Self>, index: u64) -> Hold {
        let mut state = self.state();
        let number = state.next_transfer;
        state.next_transfer += 1;
        state.transfers.insert(number, index);
        drop(state);
        Hold { compaction: self.clone(), number }
    }

    /// Up to where the log may go.
    pub(crate) fn purge_upto(&self) -> Option<u64> {
        let state = self.state();
        let saved = state.saved?;
        let mut upto = saved.checked_sub(self.kept_entries)?;
        if self.kept_bytes > 0 {
            let through = |index: u64| state.marks.iter().rev().find(|(marked, _)| *marked <= index);
            let total = through(saved)?.1;
            let enough = |bytes: &u64| total - bytes >= self.kept_bytes;
            upto = state.marks.iter().rev().find(|(marked, bytes)| *marked <= upto && enough(bytes))?.0;
        }
        Some(state.transfers.values().copied().fold(upto, u64::min))
    }

    pub(crate) fn wait_for_build(&self) -> oneshot::Receiver<()> {
        let (sender, ended) = oneshot::channel();
        self.state().waiting = Some(sender);
        ended
    }

    pub(crate) fn is_due(&self) -> bool {
        let state = self.state();
        state.asked || state.entries >= self.after_entries || state.bytes >= self.after_bytes
    }
}

/// Keeps a stretch of log while a snapshot in front of it is on its way.
pub(crate) struct Hold {
    compaction: Arc<Compaction>,
    number: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.compaction.state().transfers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Position;

    fn settings() -> Settings {
        Settings { snapshot_after_entries: 100, log_kept_entries: 10, log_kept_bytes: 1000, ..Settings::default() }
    }

    fn meta(index: u64) -> SnapshotMeta {
        SnapshotMeta { last_log_id: Some(Position { term: 1, index }.into()), ..SnapshotMeta::default() }
    }

    fn applied(compaction: &Compaction, indices: std::ops::Range<u64>, bytes: usize) {
        for index in indices {
            compaction.applied(index, bytes);
        }
    }

    #[test]
    fn entries_or_bytes_make_it_due_and_a_build_begins_anew() {
        let compaction = Compaction::new(&settings(), 0);
        applied(&compaction, 0..99, 1);
        assert!(!compaction.is_due());
        compaction.applied(99, 1);
        assert!(compaction.is_due());
        compaction.begin_build();
        assert!(!compaction.is_due());
        compaction.applied(100, usize::try_from(settings().snapshot_after_bytes).unwrap());
        assert!(compaction.is_due());
    }

    #[test]
    fn thresholds_differ_by_draw_by_less_than_a_quarter() {
        let after = |draw| Compaction::new(&settings(), draw).after_entries;
        assert_eq!((after(0), after(24), after(25)), (100, 124, 100));
    }

    #[test]
    fn entries_and_bytes_are_both_kept() {
        let compaction = Compaction::new(&settings(), 0);
        assert_eq!(compaction.purge_upto(), None, "without a snapshot nothing goes");
        applied(&compaction, 0..1000, 10);
        compaction.saved(&meta(999));
        let upto = compaction.purge_upto().unwrap();
        assert!((999 - upto) * 10 >= 1000 && 999 - upto <= 100 + 2 * MARK_ENTRIES, "{upto}");
        let few = Compaction::new(&Settings { log_kept_bytes: 0, ..settings() }, 0);
        applied(&few, 0..1000, 10);
        few.saved(&meta(999));
        assert_eq!(few.purge_upto(), Some(989));
    }

    #[test]
    fn a_snapshot_in_transfer_keeps_what_follows_it() {
        let compaction = Arc::new(Compaction::new(&Settings { log_kept_bytes: 0, ..settings() }, 0));
        applied(&compaction, 0..1000, 10);
        let hold = compaction.hold(400);
        compaction.saved(&meta(999));
        assert_eq!(compaction.purge_upto(), Some(400));
        drop(hold);
        assert_eq!(compaction.purge_upto(), Some(989));
    }

    #[test]
    fn marks_stay_bounded_and_are_void_after_an_install() {
        let compaction = Compaction::new(&settings(), 0);
        applied(&compaction, 0..2_000_000, 10);
        assert!(compaction.state().marks.len() <= MARKS_MAX);
        compaction.saved(&meta(1_999_999));
        assert!(compaction.purge_upto().unwrap() > 1_990_000);
        compaction.installed(&meta(3_000_000));
        assert_eq!(compaction.purge_upto(), None, "bytes behind an installed snapshot are not known");
    }
}
