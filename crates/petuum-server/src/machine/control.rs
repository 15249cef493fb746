//! The control group's replica.

use bytes::Bytes;
use petuum_chaos::{Failpoint, reached};
use petuum_consensus::{Machine, MachineError, SnapshotView};
use petuum_control::{Control, ControlCommand};
use petuum_types::{LogIndex, codec};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// One replica of the control group, shared by consensus, the driver and the services.
pub struct ControlCell {
    state: Mutex<Control>,
    applied: watch::Sender<LogIndex>,
}

impl ControlCell {
    /// An empty replica.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(Control::new()), applied: watch::Sender::new(LogIndex(0)) })
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // Half changed by a panic inside apply: nobody may see it. The group is rebuilt from its log.
            let mut state = poisoned.into_inner();
            *state = Control::new();
            self.state.clear_poison();
            state
        })
    }

    /// Looks at the state. The closure must be quick: apply waits for it.
    pub fn with<T>(&self, look: impl FnOnce(&Control) -> T) -> T {
        look(&self.lock())
    }

    /// Changes whenever the state does.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<LogIndex> {
        self.applied.subscribe()
    }

    /// The last applied index.
    #[must_use]
    pub fn applied(&self) -> LogIndex {
        *self.applied.borrow()
    }

    fn replace(&self, state: Control, index: LogIndex) {
        *self.lock() = state;
        self.applied.send_replace(index);
    }
}

/// A cell as consensus drives it.
pub struct ControlMachine {
    cell: Arc<ControlCell>,
}

impl ControlMachine {
    /// A fresh machine on the cell; the log brings the state back.
    #[must_use]
    pub fn fresh(cell: Arc<ControlCell>) -> Self {
        cell.replace(Control::new(), LogIndex(0));
        Self { cell }
    }
}

impl Machine for ControlMachine {
    fn apply(&mut self, index: LogIndex, entry: Bytes) -> Result<Bytes, MachineError> {
        let command: ControlCommand = codec::decode(&entry)
            .map_err(|e| MachineError::new(format!("control group, {index}: {e}; the replica stops here")))?;
        let [before, after] = sides(&command);
        reached(before);
        let answer = self.cell.lock().apply(index, &command);
        reached(after);
        self.cell.applied.send_replace(index);
        Ok(codec::encode(&answer).into())
    }

    fn skip(&mut self, index: LogIndex) {
        self.cell.applied.send_replace(index);
    }

    fn view(&self) -> Box<dyn SnapshotView> {
        // The applied index rides in front: a replica that installs the view knows where it stands.
        let mut bytes = self.cell.applied().0.to_le_bytes().to_vec();
        bytes.extend(self.cell.lock().encode());
        Box::new(Encoded(bytes.into()))
    }

    fn install(&mut self, pieces: &mut dyn Iterator<Item = Result<Bytes, MachineError>>) -> Result<(), MachineError> {
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend_from_slice(&piece?);
        }
        let (index, state) =
            bytes.split_first_chunk::<8>().ok_or_else(|| MachineError::new("control group: an empty snapshot"))?;
        let state = Control::decode(state).map_err(|e| MachineError::new(format!("control group: {e}")))?;
        self.cell.replace(state, LogIndex(u64::from_le_bytes(*index)));
        Ok(())
    }
}

/// The failpoints on either side of a command.
const fn sides(command: &ControlCommand) -> [Failpoint; 2] {
    match command {
        ControlCommand::Form { .. } => [Failpoint::FormBeforeApply, Failpoint::FormAfterApply],
        ControlCommand::CreateJob { .. } => [Failpoint::PlanJobBeforeApply, Failpoint::PlanJobAfterApply],
        ControlCommand::CreateTable { .. } => [Failpoint::PlanTableBeforeApply, Failpoint::PlanTableAfterApply],
        ControlCommand::DropTable { .. } => [Failpoint::PlanDropBeforeApply, Failpoint::PlanDropAfterApply],
        ControlCommand::Register { .. } => [Failpoint::RegisterBeforeApply, Failpoint::RegisterAfterApply],
        ControlCommand::Evict { .. } => [Failpoint::EvictBeforeApply, Failpoint::EvictAfterApply],
        ControlCommand::MapReady { .. } => [Failpoint::RecordMapBeforeApply, Failpoint::RecordMapAfterApply],
        ControlCommand::JobReady { .. } => [Failpoint::RecordJobBeforeApply, Failpoint::RecordJobAfterApply],
        ControlCommand::TableReady { .. } => [Failpoint::RecordTableBeforeApply, Failpoint::RecordTableAfterApply],
        ControlCommand::TableGone { .. } => [Failpoint::RecordGoneBeforeApply, Failpoint::RecordGoneAfterApply],
        ControlCommand::RecordClock { .. } => [Failpoint::RecordClockBeforeApply, Failpoint::RecordClockAfterApply],
        ControlCommand::RecordSettled { .. } => {
            [Failpoint::RecordSettledBeforeApply, Failpoint::RecordSettledAfterApply]
        }
    }
}

/// The control state is small: it is encoded at once and handed out in pieces.
struct Encoded(Bytes);

impl SnapshotView for Encoded {
    fn next_piece(&mut self, max_bytes: usize) -> Option<Bytes> {
        let take = self.0.len().min(max_bytes);
        (take > 0).then(|| self.0.split_to(take))
    }
}
