//! Who may speak, and in which order (P4): everything that is decided before a message's content is looked at.
//!
//! Nothing here is a final refusal but a fence, and nothing here changes state.

use crate::member::{Member, Standing};
use crate::shard::Shard;
use petuum_chaos::{Mutant, mutated};
use petuum_types::message::{Kind, WorkerMessage};
use petuum_types::outcome::{Fence, Outcome, Retry};
use std::cmp::Ordering;

impl Shard {
    /// The member whose next message this is, or the answer to a message that is not.
    pub(crate) fn admission(&self, message: &WorkerMessage) -> Result<&Member, Outcome> {
        let member = self.speaker(message)?;
        match message.sequence.cmp(&member.next) {
            Ordering::Equal => Ok(member),
            // Sequences below the floor were given under an older map: this content was never taken.
            Ordering::Less if message.sequence >= member.floor => Err(repeated(member, message)),
            Ordering::Greater if mutated(Mutant::SequenceGapAccepted) => Ok(member),
            Ordering::Less | Ordering::Greater => Err(Outcome::Retry(Retry::Gap { expected: member.next })),
        }
    }

    /// The member that this message's incarnation may speak for.
    pub(crate) fn speaker(&self, message: &WorkerMessage) -> Result<&Member, Outcome> {
        let ours = self.epoch;
        match message.epoch.cmp(&ours) {
            Ordering::Less => return Err(Outcome::Retry(Retry::MapBehind { ours })),
            Ordering::Greater => return Err(Outcome::Retry(Retry::ShardBehind { ours })),
            Ordering::Equal => {}
        }
        let unregistered = Outcome::Retry(Retry::Unregistered);
        let Some(job) = self.jobs.get(&message.job) else { return Err(unregistered) };
        match message.generation.cmp(&job.generation) {
            Ordering::Less => return Err(Outcome::Fenced(Fence::OldGeneration { current: job.generation })),
            Ordering::Greater => return Err(unregistered),
            Ordering::Equal => {}
        }
        let member = job.members.get(&message.worker).ok_or(unregistered.clone())?;
        match member.fence(message.incarnation) {
            Some(fence) => Err(Outcome::Fenced(fence)),
            None if message.incarnation == member.incarnation && member.settled => Ok(member),
            None if mutated(Mutant::IncarnationNotChecked) && member.settled => Ok(member),
            None => Err(unregistered),
        }
    }
}

impl Member {
    /// Why an incarnation may never speak again, once that is known.
    ///
    /// Between fence and settle a lower incarnation may not speak, but it is not told so yet: whether it was replaced or
    /// removed is decided by the settle, and a final answer must give the true reason.
    pub(crate) fn fence(&self, incarnation: petuum_types::Incarnation) -> Option<Fence> {
        if !self.settled || incarnation > self.incarnation || mutated(Mutant::IncarnationNotChecked) {
            return None;
        }
        match self.standing {
            Standing::Removed => Some(Fence::Removed { at: self.clock }),
            _ if incarnation < self.incarnation => Some(Fence::Replaced { by: self.incarnation }),
            _ => None,
        }
    }
}

/// The answer to a message that was taken before, for a client that lost the first one.
///
/// A refusal is given again. A part or tick of a clock that has been ticked since is answered *ticked*: the client goes
/// on to the remaining ticks. Anything else took effect and still holds, or was undone by this incarnation's own abort.
fn repeated(member: &Member, message: &WorkerMessage) -> Outcome {
    if let Some(refusal) = member.refusals.get(&message.sequence) {
        return Outcome::Refused(refusal.clone());
    }
    match message.kind {
        Kind::Stage | Kind::Tick | Kind::StageTick if message.clock < member.clock => Outcome::Ticked,
        Kind::Stage | Kind::Tick | Kind::StageTick | Kind::Abort => Outcome::Accepted,
    }
}
