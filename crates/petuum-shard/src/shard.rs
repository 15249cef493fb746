//! The state of one shard and its entry points. The rules are in the modules named by each.

use crate::job::Job;
use crate::marks::Marks;
use crate::member::Member;
use crate::settings::Settings;
use crate::table::{Tables, Touched};
use petuum_types::command::{ShardAnswer, WorkerKey};
use petuum_types::entry::Entry;
use petuum_types::message::WorkerMessage;
use petuum_types::outcome::{Outcome, Retry};
use petuum_types::{Clock, JobId, LogIndex, MapEpoch, RowId, Sequence, ShardId, Slot, TableId, WorkerId};
use std::collections::BTreeMap;
use std::ops::Range;

/// What applying an entry answers, in the entry's own shape.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Applied {
    /// One outcome per message, in order.
    Messages(Vec<Outcome>),
    /// The answer to a command.
    Command(ShardAnswer),
}

/// One shard as one replica has applied it.
///
/// Copies are cheap in the number of rows: rows are shared until one side changes them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    pub(crate) id: ShardId,
    pub(crate) settings: Settings,
    /// The last log index taken in.
    pub(crate) applied: LogIndex,
    /// The index of the last command: parked reads are all looked at again when it moves (P11).
    pub(crate) last_command: LogIndex,
    /// 0 until the first `Own`.
    pub(crate) epoch: MapEpoch,
    pub(crate) slots: Range<u16>,
    pub(crate) jobs: BTreeMap<JobId, Job>,
    pub(crate) tables: Tables,
    pub(crate) marks: Marks,
}

impl Shard {
    /// A shard that has applied nothing and owns no slot.
    #[must_use]
    pub fn new(id: ShardId, settings: Settings) -> Self {
        Self {
            id,
            settings,
            applied: LogIndex(0),
            last_command: LogIndex(0),
            epoch: MapEpoch(0),
            slots: 0..0,
            jobs: BTreeMap::new(),
            tables: Tables::default(),
            marks: Marks::default(),
        }
    }

    /// Applies one log entry. Messages are judged in order, each on the state the one before left; all effects of the
    /// entry carry its index.
    ///
    /// # Panics
    /// If `index` is not above the last one: the log would have been applied twice.
    pub fn apply(&mut self, index: LogIndex, entry: &Entry) -> Applied {
        self.advance(index);
        let mut touched = Touched::default();
        let applied = match entry {
            Entry::Messages(messages) => {
                let entry_bytes = messages.iter().map(|m| m.payload.len()).sum();
                let judge = |m| self.apply_message(index, m, entry_bytes, &mut touched);
                Applied::Messages(messages.iter().map(judge).collect())
            }
            Entry::Command(command) => {
                self.last_command = index;
                Applied::Command(self.apply_command(index, command, &mut touched))
            }
        };
        self.tables.rehash(touched);
        self.marks.reached(index, &self.tables);
        applied
    }

    /// Takes in an index whose entry carries nothing for the shard: a blank or a membership change of the group.
    ///
    /// # Panics
    /// As [`Shard::apply`].
    pub fn skip(&mut self, index: LogIndex) {
        self.advance(index);
        self.marks.reached(index, &self.tables);
    }

    fn advance(&mut self, index: LogIndex) {
        assert!(index > self.applied, "{}: {index} after {}: an entry applied twice", self.id, self.applied);
        self.marks.passed(self.applied, index, &self.tables);
        self.applied = index;
    }

    /// A leader's early answer to a message that need not be logged: of a fenced incarnation, another epoch, an
    /// incarnation not heard of yet, a repeat of what is applied, or over a limit for now (P4).
    ///
    /// `None` means: log it. A gap is not judged here, because the messages before may be in the log and not applied
    /// yet; [`Shard::next_sequence`] is what a leader that keeps count of them compares with. The final ones
    /// among these answers are fences and the repeats of refusals that apply decided before.
    #[must_use]
    pub fn precheck(&self, message: &WorkerMessage) -> Option<Outcome> {
        match self.admission(message) {
            Err(Outcome::Retry(Retry::Gap { .. })) => None,
            Err(outcome) => Some(outcome),
            Ok(member) => self.over_limit_for_now(member, message),
        }
    }

    /// The next sequence this shard takes of the message's incarnation, as applied; `None` if it takes none.
    #[must_use]
    pub fn next_sequence(&self, message: &WorkerMessage) -> Option<Sequence> {
        self.speaker(message).ok().map(|member| member.next)
    }

    /// Which shard this is.
    #[must_use]
    pub const fn id(&self) -> ShardId {
        self.id
    }

    /// The last index taken in.
    #[must_use]
    pub const fn applied(&self) -> LogIndex {
        self.applied
    }

    /// The index of the last command applied; 0 if none was.
    #[must_use]
    pub const fn last_command(&self) -> LogIndex {
        self.last_command
    }

    /// The map epoch; 0 before the first `Own`.
    #[must_use]
    pub const fn epoch(&self) -> MapEpoch {
        self.epoch
    }

    /// The slots owned, `first..end`.
    #[must_use]
    pub fn slots(&self) -> Range<u16> {
        self.slots.clone()
    }

    /// A job's min clock here; `None` for a job never opened.
    #[must_use]
    pub fn min_clock(&self, job: JobId) -> Option<Clock> {
        self.jobs.get(&job).map(|job| job.min_clock)
    }

    /// The clocks of a job's workers that were ever fenced here, in the order of their ids. For audits.
    pub fn worker_clocks(&self, job: JobId) -> impl Iterator<Item = (WorkerId, Clock)> {
        let members = self.jobs.get(&job).into_iter().flat_map(|job| &job.members);
        members.map(|(worker, member)| (*worker, member.clock))
    }

    pub(crate) fn owns(&self, table: TableId, row: RowId) -> bool {
        self.slots.contains(&Slot::of(table, row).0)
    }

    /// A member that the caller has just looked up.
    pub(crate) fn member_mut(&mut self, key: WorkerKey) -> &mut Member {
        let job = self.jobs.get_mut(&key.job).expect("the job was just looked up");
        job.members.get_mut(&key.worker).expect("the member was just looked up")
    }
}
