//! Reads: from what this replica has applied, or as of now, from the shard's leader (P10, P12).

use crate::groups::ShardReplica;
use crate::machine::ReadFailure;
use crate::shared::Inner;
use petuum_chaos::{Mutant, mutated};
use petuum_net::status::{LeaderHint, to_status, with_leader};
use petuum_net::{convert, wire};
use petuum_types::outcome::Fence;
use petuum_types::read::{Read, ReadAnswer, ReadRefusal};
use petuum_types::{Error, ErrorKind, LogIndex};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

/// A read is held at most this long, whatever it asks for.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Answers a read of one shard from its replica on this node.
///
/// # Errors
/// A status that names the shard, and its leader if this node knows it.
pub(super) async fn answer(inner: &Inner, request: &wire::ReadRequest) -> Result<ReadAnswer, Box<Status>> {
    let (shard, read) = convert::read_from_wire(request).map_err(|e| Box::new(to_status(&e)))?;
    let running = inner.running().map_err(|e| Box::new(to_status(&e)))?;
    let Some(replica) = running.shards.get(&shard) else {
        let message = format!("this node has no replica of {shard}; fetch the shard map");
        return Err(Box::new(to_status(&Error::new(ErrorKind::NotFound, message))));
    };
    let wait = WAIT_MAX.min(Duration::from_millis(u64::from(request.wait_ms)));
    answer_by(replica, read, request.latest, Instant::now() + wait).await.map_err(|error| {
        let leader = replica.group.status().leader;
        let hint = leader.and_then(|node| {
            let address = running.identity.map.nodes.get(&node)?.clone();
            Some(LeaderHint { node, address })
        });
        Box::new(with_leader(&error.context(shard), hint))
    })
}

async fn answer_by(replica: &ShardReplica, mut read: Read, latest: bool, end: Instant) -> Result<ReadAnswer, Error> {
    let mut is_current = false;
    if latest && !(mutated(Mutant::LatestUnconfirmed) && replica.group.status().is_leader()) {
        let index = confirmed(replica, end).await?;
        // Not only "applied by now": the group may be built anew from its log between the two.
        read.min_index = read.min_index.max(index);
        is_current = true;
    }
    let mut answer = replica.cell.read(read.clone(), left(end)).await;
    // That a thing does not exist is believed only of a leader that has proven to be one and has applied everything: a
    // new leader may not have applied its creation yet, an old one may not know that it was deposed.
    if !is_current
        && is_unknown(&answer)
        && replica.group.status().is_leader()
        && let Ok(index) = confirmed(replica, end).await
    {
        is_current = true;
        read.min_index = read.min_index.max(index);
        answer = replica.cell.read(read, left(end)).await;
    }
    answer.map_err(|failure| match failure {
        ReadFailure::Error(error) => error,
        ReadFailure::Refused(refusal) => refused(refusal, is_current),
    })
}

fn left(end: Instant) -> Duration {
    end.saturating_duration_since(Instant::now())
}

/// ReadIndex: a majority confirms that this replica leads, after the request has come; what it has applied at the index
/// that is returned holds everything that was acknowledged before. A leader that was deposed without noticing gets no
/// majority (P12).
async fn confirmed(replica: &ShardReplica, end: Instant) -> Result<LogIndex, Error> {
    let begin = Instant::now();
    match timeout_at(end, replica.group.read_index()).await {
        Ok(Ok(index)) => Ok(index),
        Ok(Err(error)) => Err(Error::new(ErrorKind::Unavailable, error.to_string())),
        Err(_) => {
            let waited = begin.elapsed();
            let message = format!("no majority of its replicas has confirmed in {waited:.1?} that this node leads it");
            Err(Error::new(ErrorKind::DeadlineExceeded, message))
        }
    }
}

fn is_unknown(answer: &Result<ReadAnswer, ReadFailure>) -> bool {
    let unknown =
        |refusal: &ReadRefusal| matches!(refusal, ReadRefusal::UnknownJob { .. } | ReadRefusal::UnknownTable { .. });
    matches!(answer, Err(ReadFailure::Refused(refusal)) if unknown(refusal))
}

/// What a refusal means to the reader: a replica that has not heard of a thing may only be behind.
fn refused(refusal: ReadRefusal, is_current: bool) -> Error {
    let kind = match &refusal {
        ReadRefusal::UnknownJob { .. } | ReadRefusal::UnknownTable { .. } if !is_current => ErrorKind::Unavailable,
        ReadRefusal::UnknownJob { .. } | ReadRefusal::UnknownTable { .. } | ReadRefusal::ForeignTable { .. } => {
            ErrorKind::NotFound
        }
        ReadRefusal::WrongShard { .. } => ErrorKind::FailedPrecondition,
        ReadRefusal::Epoch { ours, theirs } if ours < theirs => ErrorKind::Unavailable,
        ReadRefusal::Epoch { .. } => ErrorKind::FailedPrecondition,
        ReadRefusal::Fenced(Fence::Replaced { .. }) => ErrorKind::Replaced,
        ReadRefusal::Fenced(Fence::Removed { .. }) => ErrorKind::Evicted,
        ReadRefusal::Fenced(Fence::OldGeneration { .. }) => ErrorKind::OldGeneration,
    };
    Error::new(kind, refusal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use petuum_types::TableId;

    #[test]
    fn p12_an_unknown_table_is_final_only_from_a_leader_that_was_confirmed() {
        let unknown = || ReadRefusal::UnknownTable { table: TableId(3) };
        assert_eq!(refused(unknown(), false).kind(), ErrorKind::Unavailable);
        assert_eq!(refused(unknown(), true).kind(), ErrorKind::NotFound);
        assert_eq!(refused(ReadRefusal::ForeignTable { table: TableId(3) }, false).kind(), ErrorKind::NotFound);
    }
}
