//! Answers kept so that a repeated call is answered as it was the first time, and not carried out again (P17).
//!
//! One ring per kind of call, so that a storm of one kind does not push the answers of another out. Kept are final answers
//! only: a refusal that asks the caller to try again must not be the answer for ever. Accepted registrations are kept with
//! their worker instead ([`crate::worker`]), where no other worker's calls push them out; of registrations this ring holds
//! the refusals.

use crate::command::{ControlAnswer, ControlCommand, EvictReason};
use crate::limits::ANSWERS_MAX;
use petuum_types::{ErrorKind, RequestId, checksum, codec};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A kind of call with answers to remember; [`crate::limits`] counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum CallKind {
    CreateJob,
    CreateTable,
    DropTable,
    Register,
    Evict,
}

/// The answers of every kind of call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Answers {
    rings: BTreeMap<CallKind, Ring>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Ring {
    order: VecDeque<RequestId>,
    answers: BTreeMap<RequestId, Remembered>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Remembered {
    /// XXH3 of the command: an id used for two different calls is the caller's mistake, and is told so.
    digest: u64,
    answer: ControlAnswer,
}

/// The call a command is, or `None` for drivers' records, `Form` (idempotent by its content) and lease expiries (which
/// their incarnation guards).
const fn call(command: &ControlCommand) -> Option<(CallKind, RequestId)> {
    match command {
        ControlCommand::CreateJob { request, .. } => Some((CallKind::CreateJob, *request)),
        ControlCommand::CreateTable { request, .. } => Some((CallKind::CreateTable, *request)),
        ControlCommand::DropTable { request, .. } => Some((CallKind::DropTable, *request)),
        ControlCommand::Register { request, .. } => Some((CallKind::Register, *request)),
        ControlCommand::Evict { reason: EvictReason::LeaseExpired, .. } => None,
        ControlCommand::Evict { request, .. } => Some((CallKind::Evict, *request)),
        _ => None,
    }
}

fn digest(command: &ControlCommand) -> u64 {
    checksum::hash(0, &codec::encode(command))
}

const fn is_final(answer: &ControlAnswer) -> bool {
    match answer {
        ControlAnswer::Registered { .. } => false,
        ControlAnswer::Refused { kind, .. } => !matches!(
            kind,
            ErrorKind::Unavailable
                | ErrorKind::ResourceExhausted
                | ErrorKind::DeadlineExceeded
                | ErrorKind::NotInitialized
        ),
        _ => true,
    }
}

impl Answers {
    /// The answer this call got before, if it is a repeat.
    pub(crate) fn recall(&self, command: &ControlCommand) -> Option<ControlAnswer> {
        let (kind, request) = call(command)?;
        let remembered = self.rings.get(&kind)?.answers.get(&request)?;
        if remembered.digest == digest(command) {
            return Some(remembered.answer.clone());
        }
        Some(ControlAnswer::Refused {
            kind: ErrorKind::InvalidArgument,
            message: format!(
                "request id {:032x} was used for another call ({kind:?}); expected a new id for each call",
                request.0
            ),
        })
    }

    /// Keeps a final answer, and forgets the oldest of its kind beyond [`ANSWERS_MAX`].
    pub(crate) fn remember(&mut self, command: &ControlCommand, answer: &ControlAnswer) {
        let Some((kind, request)) = call(command).filter(|_| is_final(answer)) else {
            return;
        };
        let ring = self.rings.entry(kind).or_default();
        let remembered = Remembered { digest: digest(command), answer: answer.clone() };
        let before = ring.answers.insert(request, remembered);
        assert!(before.is_none(), "P17: {kind:?} {:032x} was carried out twice", request.0);
        ring.order.push_back(request);
        if ring.order.len() > ANSWERS_MAX {
            let oldest = ring.order.pop_front().expect("longer than its bound");
            ring.answers.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petuum_types::{JobId, TableId};

    fn drop_table(request: u128) -> ControlCommand {
        ControlCommand::DropTable { request: RequestId(request), job: JobId(1), name: "w".into() }
    }

    #[test]
    fn the_oldest_answer_goes_first() {
        let mut answers = Answers::default();
        for i in 0..=ANSWERS_MAX {
            answers.remember(&drop_table(i as u128), &ControlAnswer::Dropping { table: TableId(1) });
        }
        assert_eq!(answers.recall(&drop_table(0)), None);
        assert_eq!(answers.recall(&drop_table(1)), Some(ControlAnswer::Dropping { table: TableId(1) }));
        assert_eq!(answers.rings[&CallKind::DropTable].answers.len(), ANSWERS_MAX);
    }

    #[test]
    fn an_id_used_for_another_call_is_told_so() {
        let mut answers = Answers::default();
        answers.remember(&drop_table(5), &ControlAnswer::Dropping { table: TableId(1) });
        let other = ControlCommand::DropTable { request: RequestId(5), job: JobId(2), name: "w".into() };
        assert!(matches!(
            answers.recall(&other),
            Some(ControlAnswer::Refused { kind: ErrorKind::InvalidArgument, .. })
        ));
    }

    #[test]
    fn a_refusal_to_be_tried_again_is_not_kept() {
        let mut answers = Answers::default();
        let refused = ControlAnswer::Refused { kind: ErrorKind::Unavailable, message: "later".into() };
        answers.remember(&drop_table(5), &refused);
        assert_eq!(answers.recall(&drop_table(5)), None);
    }
}
