//! A shard's replica: the state, the reads parked on it, and the adapter that consensus drives.

use bytes::Bytes;
use petuum_chaos::{Failpoint, Mutant, mutated, reached};
use petuum_consensus::{Machine, MachineError, SnapshotView};
use petuum_shard::{Applied, ParkLimit, ParkedReads, ReadOutcome, Restore, Settings, Shard, View};
use petuum_types::command::ShardCommand;
use petuum_types::entry::Entry;
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::read::{Read, ReadAnswer, ReadRefusal};
use petuum_types::{Clock, Error, ErrorKind, JobId, LogIndex, ShardId, codec, limits};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;

/// Bytes of values of one answer; one row always fits.
const READ_BYTES_MAX: u64 = limits::READ_BYTES_MAX as u64;

/// Why a read got no answer.
#[derive(Debug)]
pub enum ReadFailure {
    /// The state says no.
    Refused(ReadRefusal),
    /// A limit, a deadline or the end of the replica.
    Error(Error),
}

type Waiter = oneshot::Sender<ReadOutcome>;

/// One replica of a shard, shared by consensus (which applies) and the services (which read).
pub struct ShardCell {
    id: ShardId,
    settings: Settings,
    state: Mutex<State>,
}

struct State {
    shard: Shard,
    parked: ParkedReads<Waiter>,
}

impl ShardCell {
    /// An empty replica.
    #[must_use]
    pub fn new(id: ShardId, settings: Settings) -> Arc<Self> {
        let state = State { shard: Shard::new(id, settings), parked: ParkedReads::default() };
        Arc::new(Self { id, settings, state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // A panic inside apply left the state half changed: nobody may see it. The group is rebuilt from its log.
            let mut state = poisoned.into_inner();
            state.shard = Shard::new(self.id, self.settings);
            self.state.clear_poison();
            state
        })
    }

    /// The shard.
    #[must_use]
    pub const fn id(&self) -> ShardId {
        self.id
    }

    /// P11: the replica stops; who waits is told to ask another.
    pub fn stop(&self) {
        drop(self.lock().parked.drain(()));
    }

    /// Looks at the state. The closure must be quick: apply waits for it.
    pub fn with<T>(&self, look: impl FnOnce(&Shard) -> T) -> T {
        look(&self.lock().shard)
    }

    /// How many reads are parked.
    #[must_use]
    pub fn parked_reads(&self) -> usize {
        self.lock().parked.len()
    }

    /// How many reads are parked that need not be (P11): none. For audits.
    #[must_use]
    pub fn overdue_reads(&self) -> usize {
        let state = self.lock();
        state.parked.overdue(&state.shard)
    }

    /// The min clock of a job here, 0 if the job is unknown.
    #[must_use]
    pub fn min_clock(&self, job: JobId) -> Clock {
        self.with(|shard| shard.min_clock(job)).unwrap_or(Clock::ZERO)
    }

    /// Answers a read from applied state, or holds it until the state satisfies it (P10, P11), for at most `wait`.
    ///
    /// # Errors
    /// [`ReadFailure`].
    pub async fn read(&self, read: Read, wait: Duration) -> Result<ReadAnswer, ReadFailure> {
        let waiting = {
            let mut state = self.lock();
            let bytes = state.shard.read_bytes(&read);
            if read.rows.len() > 1 && bytes > READ_BYTES_MAX {
                let message =
                    format!("{}: a read of {bytes} bytes; ask for fewer rows, {READ_BYTES_MAX} bytes at most", self.id);
                return Err(ReadFailure::Error(Error::new(ErrorKind::InvalidArgument, message)));
            }
            if mutated(Mutant::ReadCreatesRow) {
                state.shard.create_rows_of(&read);
            }
            match state.shard.read(&read) {
                ReadOutcome::Answer(answer) => return Ok(answer),
                ReadOutcome::Refused(refusal) => return Err(ReadFailure::Refused(refusal)),
                ReadOutcome::Wait => {}
            }
            let (waiter, waiting) = oneshot::channel();
            state.park(read.clone(), waiter).map_err(|limit| {
                ReadFailure::Error(Error::new(ErrorKind::ResourceExhausted, format!("{}: {limit}", self.id)))
            })?;
            waiting
        };
        match tokio::time::timeout(wait, waiting).await {
            Ok(Ok(ReadOutcome::Answer(answer))) => Ok(answer),
            Ok(Ok(ReadOutcome::Refused(refusal))) => Err(ReadFailure::Refused(refusal)),
            Ok(Ok(ReadOutcome::Wait) | Err(_)) => Err(ReadFailure::Error(Error::new(
                ErrorKind::Unavailable,
                format!("{}: this replica was stopped or rebuilt while the read waited; ask again", self.id),
            ))),
            Err(_) => Err(ReadFailure::Error(self.late(&read))),
        }
    }

    fn late(&self, read: &Read) -> Error {
        let mut state = self.lock();
        state.parked.remove(Waiter::is_closed);
        let have = state.shard.min_clock(read.job).unwrap_or(Clock::ZERO);
        let slowest = state.shard.workers(read.job).into_iter().filter(|w| w.live).min_by_key(|w| w.clock);
        let who = slowest.map(|w| format!("; the slowest is {} at {}", w.worker, w.clock)).unwrap_or_default();
        let (id, applied) = (self.id, state.shard.applied());
        Error::new(
            ErrorKind::DeadlineExceeded,
            format!(
                "{id}: the read needs min clock {} and {}; this replica has min clock {} at {applied}{who}",
                read.min_clock.0, read.min_index, have.0
            ),
        )
    }

    fn apply(&self, index: LogIndex, entry: &Entry) -> Applied {
        let mut state = self.lock();
        let applied = state.shard.apply(index, entry);
        state.wake();
        applied
    }

    fn replace(&self, shard: Shard) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.shard, shard);
        if mutated(Mutant::SnapshotKeepsOldRows) {
            state.shard.keep_rows_of(&before);
        }
        if !mutated(Mutant::ReadNotWokenBySnapshot) {
            state.wake();
        }
    }
}

impl State {
    /// Parks a read. Readers that have gone away make room first.
    fn park(&mut self, read: Read, waiter: Waiter) -> Result<(), ParkLimit> {
        let Err(full) = self.parked.park(read.clone(), waiter) else { return Ok(()) };
        self.parked.remove(Waiter::is_closed);
        self.parked.park(read, full.token).map_err(|full| full.limit)
    }

    /// P11: every change of applied state looks at the parked reads again.
    fn wake(&mut self) {
        for (waiter, outcome) in self.parked.wake(&self.shard) {
            // The reader may have gone; then there is nobody to tell.
            let _ = waiter.send(outcome);
        }
    }
}

/// A cell as consensus drives it.
pub struct ShardMachine {
    cell: Arc<ShardCell>,
}

impl ShardMachine {
    /// A fresh machine on the cell: whatever the cell held is forgotten, the log will bring it back.
    #[must_use]
    pub fn fresh(cell: Arc<ShardCell>) -> Self {
        cell.replace(Shard::new(cell.id, cell.settings));
        Self { cell }
    }
}

impl Machine for ShardMachine {
    fn apply(&mut self, index: LogIndex, entry: Bytes) -> Result<Bytes, MachineError> {
        // An entry was checked before it was proposed; one that does not decode is damage or of a newer version.
        let entry = Entry::decode(&entry)
            .map_err(|e| MachineError::new(format!("{}, {index}: {e}; the replica stops here", self.cell.id)))?;
        let sides = sides(&entry);
        sides.iter().for_each(|[before, _]| reached(*before));
        let applied = self.cell.apply(index, &entry);
        sides.iter().for_each(|[_, after]| reached(*after));
        Ok(match applied {
            Applied::Messages(outcomes) => codec::encode(&outcomes).into(),
            Applied::Command(answer) => codec::encode(&answer).into(),
        })
    }

    fn skip(&mut self, index: LogIndex) {
        // The entry that forms a group has index 0, which a shard takes for "nothing applied yet"; it carries nothing.
        if index == LogIndex(0) {
            return;
        }
        let mut state = self.cell.lock();
        state.shard.skip(index);
        state.wake();
    }

    fn view(&self) -> Box<dyn SnapshotView> {
        Box::new(ShardView::new(self.cell.with(Shard::view)))
    }

    fn install(&mut self, pieces: &mut dyn Iterator<Item = Result<Bytes, MachineError>>) -> Result<(), MachineError> {
        let damaged = |e: petuum_shard::Damaged| MachineError::new(format!("{}: {e}", self.cell.id));
        let mut restore = Restore::new(self.cell.id, self.cell.settings);
        for piece in pieces {
            restore.push(&piece?).map_err(damaged)?;
        }
        self.cell.replace(restore.finish().map_err(damaged)?);
        Ok(())
    }
}

/// The failpoints on either side of each message, or of the command, of an entry.
fn sides(entry: &Entry) -> Vec<[Failpoint; 2]> {
    let of_message = |message: &WorkerMessage| match message.kind {
        Kind::Stage => [Failpoint::StageBeforeApply, Failpoint::StageAfterApply],
        Kind::Tick | Kind::StageTick => [Failpoint::TickBeforeApply, Failpoint::TickAfterApply],
        Kind::Abort => [Failpoint::AbortBeforeApply, Failpoint::AbortAfterApply],
    };
    match entry {
        Entry::Messages(messages) => messages.iter().map(of_message).collect(),
        Entry::Command(command) => vec![match command {
            ShardCommand::Own { .. } => [Failpoint::OwnBeforeApply, Failpoint::OwnAfterApply],
            ShardCommand::OpenJob { .. } => [Failpoint::OpenJobBeforeApply, Failpoint::OpenJobAfterApply],
            ShardCommand::CreateTable(_) => [Failpoint::CreateTableBeforeApply, Failpoint::CreateTableAfterApply],
            ShardCommand::DropTable(_) => [Failpoint::DropTableBeforeApply, Failpoint::DropTableAfterApply],
            ShardCommand::Fence { .. } => [Failpoint::FenceBeforeApply, Failpoint::FenceAfterApply],
            ShardCommand::Settle { .. } => [Failpoint::SettleBeforeApply, Failpoint::SettleAfterApply],
        }],
    }
}

/// A view that is cut into pieces as they are asked for.
enum ShardView {
    Whole(Option<Box<View>>),
    Pieces(Box<dyn Iterator<Item = Bytes> + Send>),
}

impl ShardView {
    fn new(view: View) -> Self {
        Self::Whole(Some(Box::new(view)))
    }
}

impl SnapshotView for ShardView {
    fn next_piece(&mut self, max_bytes: usize) -> Option<Bytes> {
        if let Self::Whole(view) = self {
            let view = view.take().expect("a whole view is taken once");
            *self = Self::Pieces(Box::new(view.pieces(max_bytes)));
        }
        match self {
            Self::Pieces(pieces) => pieces.next(),
            Self::Whole(_) => unreachable!("it was just cut"),
        }
    }
}
