//! A node's settings, with their bounds. Defaults live here and nowhere else.

use petuum_types::limits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What an operator may set of one node. Components (listener, store, connector) are arguments of the node instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeSettings {
    /// Below this much free space in the data directory commits are refused and all else goes on (P22). Bytes; 16 MiB
    /// or more: a full disk stops the node.
    pub free_bytes_min: u64,
    /// How often the free space is looked at, in milliseconds; 100 to 60,000.
    pub free_check_ms: u64,
    /// Log entries one shard may have proposed and not yet applied, 1 to 64. More fill the disk's queue better, fewer
    /// gather more messages into one entry.
    pub gather_in_flight: usize,
    /// Worker messages one commit stream may have unanswered, 16 to 65,536.
    pub stream_messages_max: usize,
    /// Bytes of worker messages one shard may hold unanswered before it answers "busy", 4 MiB or more.
    pub shard_queue_bytes: usize,
    /// Staged bytes kept per (worker, shard); 64 MiB, which clients count on, or more. All nodes of a cluster must agree:
    /// it is judged in apply.
    pub staged_bytes_max: usize,
    /// Pause between two looks of the driver at what is to be done when nothing changes, in milliseconds; 10 to 10,000.
    pub driver_tick_ms: u64,
    /// Deadline of one call of the driver or a node to another node, in milliseconds; 100 to 60,000.
    pub peer_call_ms: u64,
    /// How long a stopping node tries to hand its leaderships over, in milliseconds; 0 to 60,000.
    pub hand_over_ms: u64,
    /// Time between heartbeats of a group's leader, in milliseconds; 10 to 5,000.
    pub heartbeat_ms: u64,
    /// Least election timeout, in milliseconds; at least three heartbeats.
    pub election_min_ms: u64,
    /// Greatest election timeout, in milliseconds; more than the least.
    pub election_max_ms: u64,
    /// Log entries between snapshots of a group; 100 or more.
    pub snapshot_after_entries: u64,
    /// Log entries kept behind a snapshot for followers that lag; fewer than 20 make a lagging follower need snapshots.
    pub log_kept_entries: u64,
    /// Bytes of log entries kept behind a snapshot, if they are more than those of `log-kept-entries`; 64 MiB, 0 or more.
    pub log_kept_bytes: u64,
}

impl Default for NodeSettings {
    fn default() -> Self {
        Self {
            free_bytes_min: 256 * 1024 * 1024,
            free_check_ms: 1000,
            gather_in_flight: 8,
            stream_messages_max: 4096,
            shard_queue_bytes: 128 * 1024 * 1024,
            staged_bytes_max: limits::STAGED_BYTES_MAX,
            driver_tick_ms: 500,
            peer_call_ms: 2000,
            hand_over_ms: 3000,
            heartbeat_ms: 180,
            election_min_ms: 540,
            election_max_ms: 720,
            snapshot_after_entries: 10_000,
            log_kept_entries: 2_000,
            log_kept_bytes: 64 * 1024 * 1024,
        }
    }
}

impl NodeSettings {
    /// Checks every bound and relation.
    ///
    /// # Errors
    /// A sentence naming the setting, its value and its bounds.
    pub fn validate(&self) -> Result<(), String> {
        let bounds = |name: &str, value: u64, low: u64, high: u64| {
            if (low..=high).contains(&value) {
                return Ok(());
            }
            Err(format!("{name} = {value}; expected {low} to {high}"))
        };
        let bytes = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
        bounds("free-bytes-min", self.free_bytes_min, 16 * 1024 * 1024, u64::MAX)?;
        bounds("free-check-ms", self.free_check_ms, 100, 60_000)?;
        bounds("gather-in-flight", bytes(self.gather_in_flight), 1, 64)?;
        bounds("stream-messages-max", bytes(self.stream_messages_max), 16, 65_536)?;
        bounds("shard-queue-bytes", bytes(self.shard_queue_bytes), 4 * 1024 * 1024, u64::MAX)?;
        bounds("staged-bytes-max", bytes(self.staged_bytes_max), bytes(limits::STAGED_BYTES_MAX), u64::MAX)?;
        bounds("driver-tick-ms", self.driver_tick_ms, 10, 10_000)?;
        bounds("peer-call-ms", self.peer_call_ms, 100, 60_000)?;
        bounds("hand-over-ms", self.hand_over_ms, 0, 60_000)?;
        bounds("heartbeat-ms", self.heartbeat_ms, 10, 5_000)?;
        bounds("election-min-ms", self.election_min_ms, 3 * self.heartbeat_ms, 60_000)?;
        bounds("election-max-ms", self.election_max_ms, self.election_min_ms + 1, 120_000)?;
        bounds("snapshot-after-entries", self.snapshot_after_entries, 100, u64::MAX)
    }

    /// Deadline of one call to another node.
    #[must_use]
    pub const fn peer_call(&self) -> Duration {
        Duration::from_millis(self.peer_call_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_every_bound_is_named() {
        NodeSettings::default().validate().unwrap();
        let short = NodeSettings { election_min_ms: 250, ..NodeSettings::default() };
        assert_eq!(short.validate().unwrap_err(), "election-min-ms = 250; expected 540 to 60000");
        let none = NodeSettings { free_bytes_min: 0, ..NodeSettings::default() };
        assert!(none.validate().unwrap_err().starts_with("free-bytes-min = 0"));
    }
}
