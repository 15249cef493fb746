//! A session's reads: from any replica that is fresh enough (P10).

use super::core::Core;
use crate::fetch::{Ask, fetch};
use petuum_types::read::{Read, ReadAnswer};
use petuum_types::{Clock, Error, LogIndex, ShardId, TableId, ValueType};

/// One shard's part of a read, from whichever replica answers first.
///
/// # Errors
/// As [`fetch`].
pub(super) async fn read(core: &Core, shard: ShardId, read: &Read, value_type: ValueType) -> Result<ReadAnswer, Error> {
    let believed = core.lock().routes[&shard].node;
    let ask = Ask { shard, read, value_type, latest: false };
    let (answer, _) = fetch(&core.cluster, &core.map, Some(believed), &ask).await?;
    Ok(answer)
}

/// Waits until a shard's min clock has reached `clock`, and notes it.
pub(super) async fn min_clock(core: &Core, shard: ShardId, clock: Clock) -> Result<(), Error> {
    let wait = Read {
        job: core.job,
        generation: core.registration.generation,
        epoch: core.map.epoch,
        reader: Some((core.registration.worker, core.registration.incarnation)),
        table: TableId(0),
        rows: Vec::new(),
        min_clock: clock,
        own_clock: Clock::ZERO,
        min_index: LogIndex(0),
    };
    let answer = read(core, shard, &wait, ValueType::I64).await?;
    core.lock().min_clocks.note_min_clock(shard, answer.min_clock);
    Ok(())
}
