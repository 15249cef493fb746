//! Bounds of the control group's state (G10), so that a snapshot always fits one record.
//!
//! Bounds that clients see as well (names, workers of a job, jobs, tables) are in [`petuum_types::limits`].

use petuum_types::limits::{JOBS_MAX, NAME_BYTES_MAX, TABLES_MAX};
use petuum_types::slot::SLOTS;

/// Workers of all jobs together.
pub const WORKERS_TOTAL_MAX: u64 = 65_536;
/// Answers remembered per kind of call (P17). A repeat that comes after this many later calls is taken for a new call.
pub const ANSWERS_MAX: usize = 10_000;
/// Registrations remembered per worker (P17), so that a repeat of an older process's call is answered, not obeyed.
pub const REGISTRATIONS_MAX: usize = 8;
/// Least lease in milliseconds; below it a healthy worker is evicted by one slow exchange.
pub const LEASE_MS_MIN: u64 = 100;
/// Greatest lease in milliseconds, a day; above it a dead worker stalls the rest for longer than anybody waits.
pub const LEASE_MS_MAX: u64 = 86_400_000;
/// Bytes of a node's address in the shard map.
pub const ADDRESS_BYTES_MAX: usize = 256;
/// Nodes of a cluster.
pub const NODES_MAX: usize = 1024;
/// Replicas of a shard.
pub const REPLICAS_MAX: usize = 9;
/// Bytes of a refusal's text: two names and a sentence.
pub const MESSAGE_BYTES_MAX: usize = 512;

/// Bytes of a record that the codec reads back. It counts integers at their full width, so these sizes do as well.
const RECORD_BYTES_MAX: usize = 64 * 1024 * 1024;
const JOB_BYTES: usize = NAME_BYTES_MAX + 96;
const WORKER_BYTES: usize = 64 + REGISTRATIONS_MAX * 24;
const TABLE_BYTES: usize = NAME_BYTES_MAX + 96;
const SHARD_BYTES: usize = 32 + REPLICAS_MAX * 8;
const ANSWER_BYTES: usize = MESSAGE_BYTES_MAX + 64;
/// Kinds of calls whose answers are kept; see [`crate::answers`].
const ANSWER_KINDS: usize = 5;

#[expect(clippy::cast_possible_truncation, reason = "65,536 fits any usize")]
const STATE_BYTES_MAX: usize = WORKERS_TOTAL_MAX as usize * WORKER_BYTES
    + JOBS_MAX * JOB_BYTES
    + TABLES_MAX * TABLE_BYTES
    + SLOTS as usize * SHARD_BYTES
    + NODES_MAX * (ADDRESS_BYTES_MAX + 16)
    + ANSWER_KINDS * ANSWERS_MAX * ANSWER_BYTES;
const _: () = assert!(STATE_BYTES_MAX < RECORD_BYTES_MAX, "a snapshot fits one record");
