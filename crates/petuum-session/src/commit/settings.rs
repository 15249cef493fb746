//! Who a committer speaks for and the bounds it keeps (G10). Nothing here changes during a session.

use petuum_types::{Clock, Generation, Incarnation, JobId, MapEpoch, ShardId, Staleness, WorkerId, limits};

/// What a registration answered: the identity under which every message goes out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionStart {
    /// The job.
    pub job: JobId,
    /// Its generation.
    pub generation: Generation,
    /// The worker.
    pub worker: WorkerId,
    /// Its incarnation; every lane's sequences start at 0 under it.
    pub incarnation: Incarnation,
    /// The epoch of the map that `shards` and all parts are of.
    pub epoch: MapEpoch,
    /// Every shard of the map, at least one.
    pub shards: Vec<ShardId>,
    /// The worker's clock in every shard: the first clock to commit.
    pub start: Clock,
}

/// The bounds of a committer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The greatest staleness of the job's tables.
    pub staleness_max: Staleness,
    /// Clocks that wait unacknowledged, less one (P6). At least 0; more hides more latency and holds more memory.
    pub window_clocks: u64,
    /// Bytes of parts that wait unacknowledged before `clock()` blocks (P6). One clock may always wait, whatever its
    /// size.
    pub unacked_bytes: usize,
    /// Bytes of parts that a shard keeps staged for this worker (P2); a clock with more for one shard cannot commit. No
    /// higher than the shards' own limit.
    pub staged_bytes: usize,
    /// Bytes sent and not answered per lane; one message may always be sent.
    pub lane_in_flight_bytes: usize,
    /// Messages kept per lane until all before them are answered, at least 1.
    pub lane_in_flight_messages: usize,
}

/// *Default* bytes sent and not answered per lane: some tens of milliseconds of a fast disk.
const LANE_IN_FLIGHT_BYTES: usize = 8 * 1024 * 1024;
/// *Default* messages of a lane on their way.
const LANE_IN_FLIGHT_MESSAGES: usize = 64;

impl Settings {
    /// The defaults, for a job whose tables have at most this staleness.
    #[must_use]
    pub const fn new(staleness_max: Staleness) -> Self {
        Self {
            staleness_max,
            window_clocks: limits::WINDOW_CLOCKS,
            unacked_bytes: limits::UNACKED_BYTES,
            staged_bytes: limits::STAGED_BYTES_MAX,
            lane_in_flight_bytes: LANE_IN_FLIGHT_BYTES,
            lane_in_flight_messages: LANE_IN_FLIGHT_MESSAGES,
        }
    }

    /// P6: how many clocks may wait unacknowledged, min(s, window_clocks) + 1.
    #[must_use]
    pub fn window(&self) -> u64 {
        u64::from(self.staleness_max.0).min(self.window_clocks).saturating_add(1)
    }
}
