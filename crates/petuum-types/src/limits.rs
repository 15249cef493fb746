//! Every named bound of the formats and their defaults (G10). Settings may lower the ones marked *default*.

/// Columns of a row.
pub const ROW_COLUMNS_MAX: u32 = 1_000_000;
/// Bytes of a job's or table's name.
pub const NAME_BYTES_MAX: usize = 128;
/// *Default* bytes of a part's payload; large batches are cut into parts.
pub const PART_BYTES: usize = 256 * 1024;
/// Bytes of a part's payload that a shard takes at all.
pub const PART_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one gRPC message between clients, nodes and peers.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of one frame of Raft traffic between peers.
pub const RAFT_FRAME_BYTES: usize = 1024 * 1024;
/// Bytes of one piece of a snapshot.
pub const SNAPSHOT_PIECE_BYTES: usize = 1024 * 1024;
/// Bytes of one log entry: gathering stops here.
pub const ENTRY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Stored bytes of a group's newest log entries kept in memory: two of the largest, or what a busy group appends in a
/// round trip. The newest one always is.
pub const RECENT_BYTES_MAX: usize = 2 * ENTRY_BYTES_MAX;
/// Newest log entries of a group kept in memory.
pub const RECENT_ENTRIES_MAX: usize = 1024;
/// Stored bytes of the newest log entries of all groups of a node kept in memory, beyond the newest one of each group.
pub const RECENT_NODE_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Bytes of one chunk of a read's answer.
pub const READ_CHUNK_BYTES: usize = 1024 * 1024;
/// Rows of one read request.
pub const READ_ROWS_MAX: usize = 65_536;
/// Bytes of values of one read request's answer; one row always fits.
pub const READ_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Staged bytes kept per (worker, shard).
pub const STAGED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// *Default* clocks that wait unacknowledged per worker, less one; see P6.
pub const WINDOW_CLOCKS: u64 = 16;
/// Finished clocks of a worker whose updates are added to rows that were read before them: what a look at a cached row
/// may cost. Rows that lack older ones are read again.
pub const OWN_CLOCKS_MAX: usize = 256;
/// *Default* bytes that wait unacknowledged per worker.
pub const UNACKED_BYTES: usize = 64 * 1024 * 1024;
/// *Default* bytes of a client's row cache.
pub const CACHE_BYTES: usize = 256 * 1024 * 1024;
/// Reads parked per shard.
pub const PARKED_READS_MAX: usize = 10_000;
/// Bytes of requests parked per shard.
pub const PARKED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Remembered refusals per (worker, shard); the client acknowledges them with its next message.
pub const REFUSALS_MAX: usize = 1024;
/// Workers of a job.
pub const WORKERS_MAX: u32 = 4096;
/// Jobs of a cluster.
pub const JOBS_MAX: usize = 1024;
/// Tables of a cluster.
pub const TABLES_MAX: usize = 16_384;

const _: () = assert!(PART_BYTES <= PART_BYTES_MAX, "a default part is a legal part");
const _: () = assert!(PART_BYTES_MAX + 4096 <= ENTRY_BYTES_MAX, "an entry holds any part and its header");
const _: () = assert!(ENTRY_BYTES_MAX + 65_536 <= MESSAGE_BYTES_MAX, "a message holds any entry and its frame");
