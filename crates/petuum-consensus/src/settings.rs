//! Settings of all groups of a node. Plain data; the server reads it from its configuration.

use crate::error::Error;
use openraft::{Config, SnapshotPolicy};
use petuum_types::limits;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;

/// Settings of all groups of a node. The times must be alike on all nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often a leader is heard. 180 ms; 10 ms to 1 h. Less costs CPU when idle, more delays failover.
    pub heartbeat: Duration,
    /// Least election timeout; 540 ms. At least three heartbeats, or one lost packet starts an election.
    pub election_min: Duration,
    /// Greatest election timeout and a leader's lease; 720 ms. A follower campaigns after this plus a sample of
    /// (min..max).
    pub election_max: Duration,
    /// How long an append stream with requests in flight may get no answer before it is begun anew; 1 s. Idle time
    /// does not count: a stream that has nothing to say is not begun anew. At least one heartbeat.
    pub append_timeout: Duration,
    /// Append requests in flight per group and follower; 32, at least 1.
    pub append_window: usize,
    /// Bytes of entries in flight per group and follower; 8 MiB. One request may go beyond it.
    pub append_window_bytes: usize,
    /// Bytes of entries in one append request; 1 MiB. One entry may go beyond it. Larger frames hold up others on the
    /// peer's connection.
    pub frame_bytes: usize,
    /// Bytes of a snapshot's piece; 1 MiB, at most half the message limit.
    pub snapshot_piece_bytes: usize,
    /// How long a snapshot transfer may show no progress at all; 10 s. The receiver answers at a quarter of it while
    /// it installs, however long that takes.
    pub install_timeout: Duration,
    /// Entries after which a group's state is saved; 10,000, plus up to a quarter, differently for each group and
    /// node, so that not all save at once.
    pub snapshot_after_entries: u64,
    /// Bytes of entries after which a group's state is saved; 256 MiB, plus up to a quarter.
    pub snapshot_after_bytes: u64,
    /// Entries kept behind a snapshot for followers that are a little behind; 2,000. Must exceed what is written
    /// while a snapshot is transferred and installed, or the follower never catches up.
    pub log_kept_entries: u64,
    /// Bytes of entries kept behind a snapshot; 64 MiB. Both this and `log_kept_entries` are kept.
    pub log_kept_bytes: u64,
    /// Snapshots built at once on this node; 1.
    pub snapshot_builds: usize,
    /// Snapshots sent at once by this node; 2.
    pub snapshot_sends: usize,
    /// Snapshots received at once by this node; 2.
    pub snapshot_receives: usize,
    /// Pause before a failed group is rebuilt; 200 ms, doubled with each failure up to a hundredfold.
    pub rebuild_pause: Duration,
    /// Messages that may wait for a group's core; 2,048. Beyond it, callers wait.
    pub channel_size: u64,
    /// For connecting to a peer; 1 s.
    pub connect_timeout: Duration,
    /// Pause after a failed connect, so that no caller spins or uses up ports; 50 ms.
    pub connect_pause: Duration,
    /// HTTP/2 pings to peers; 1 s. A silently dead connection is found after twice this.
    pub keep_alive: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(180),
            election_min: Duration::from_millis(540),
            election_max: Duration::from_millis(720),
            append_timeout: Duration::from_secs(1),
            append_window: 32,
            append_window_bytes: 8 * limits::RAFT_FRAME_BYTES,
            frame_bytes: limits::RAFT_FRAME_BYTES,
            snapshot_piece_bytes: limits::SNAPSHOT_PIECE_BYTES,
            install_timeout: Duration::from_secs(10),
            snapshot_after_entries: 10_000,
            snapshot_after_bytes: 256 * MIB,
            log_kept_entries: 2_000,
            log_kept_bytes: 64 * MIB,
            snapshot_builds: 1,
            snapshot_sends: 2,
            snapshot_receives: 2,
            rebuild_pause: Duration::from_millis(200),
            channel_size: 2_048,
            connect_timeout: Duration::from_secs(1),
            connect_pause: Duration::from_millis(50),
            keep_alive: Duration::from_secs(1),
        }
    }
}

impl Settings {
    /// Checks bounds and relations.
    ///
    /// # Errors
    /// [`Error::Settings`] names what contradicts what.
    pub fn validate(&self) -> Result<(), Error> {
        let hour = Duration::from_secs(3600);
        let rules = [
            (
                self.heartbeat >= Duration::from_millis(10) && self.heartbeat <= hour,
                format!("heartbeat {:?} is not within 10 ms to 1 h", self.heartbeat),
            ),
            (
                self.heartbeat * 3 <= self.election_min,
                format!("heartbeat {:?} is more than a third of election_min {:?}", self.heartbeat, self.election_min),
            ),
            (
                self.election_min < self.election_max,
                format!("election_min {:?} is not below election_max {:?}", self.election_min, self.election_max),
            ),
            (
                self.append_timeout >= self.heartbeat,
                format!("append_timeout {:?} is below heartbeat {:?}", self.append_timeout, self.heartbeat),
            ),
            (
                [self.append_window, self.snapshot_builds, self.snapshot_sends, self.snapshot_receives]
                    .iter()
                    .all(|count| *count > 0),
                "append_window, snapshot_builds, snapshot_sends and snapshot_receives must not be 0".to_owned(),
            ),
            (
                (1024..=limits::ENTRY_BYTES_MAX).contains(&self.frame_bytes),
                format!("frame_bytes {} is not within 1 KiB to {}", self.frame_bytes, limits::ENTRY_BYTES_MAX),
            ),
            (
                (1..=limits::MESSAGE_BYTES_MAX / 4).contains(&self.snapshot_piece_bytes),
                format!(
                    "snapshot_piece_bytes {} is not within 1 to {}",
                    self.snapshot_piece_bytes,
                    limits::MESSAGE_BYTES_MAX / 4
                ),
            ),
            (
                self.snapshot_after_entries > 0 && self.snapshot_after_bytes > 0,
                "snapshot_after_entries and snapshot_after_bytes must not be 0".to_owned(),
            ),
            (self.channel_size > 0, "channel_size must not be 0".to_owned()),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            None => Ok(()),
            Some((_, broken)) => Err(Error::Settings(broken)),
        }
    }

    /// openraft's own configuration.
    pub(crate) fn config(&self, cluster_name: String) -> Result<Config, Error> {
        let millis = |time: Duration| u64::try_from(time.as_millis()).expect("checked to be below an hour or so");
        let config = Config {
            cluster_name,
            heartbeat_interval: millis(self.heartbeat),
            election_timeout_min: millis(self.election_min),
            election_timeout_max: millis(self.election_max),
            install_snapshot_timeout: millis(self.install_timeout),
            // The cap is in bytes, in the log reader.
            max_payload_entries: 4096,
            max_append_entries: Some(1024),
            // When to save and what to purge is decided by bytes too: `compaction`.
            snapshot_policy: SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: u64::MAX,
            api_channel_size: Some(self.channel_size),
            notification_channel_size: Some(self.channel_size),
            state_machine_channel_size: Some(256),
            // A candidate that cannot win must not unseat a leader.
            enable_pre_vote: Some(true),
            // Leadership is won by votes only, never taken up again after a restart.
            enable_leader_restore: Some(false),
            // A shorter log than a leader has seen is damage, never to be papered over.
            allow_log_reversion: Some(false),
            quorum_loss_probe_interval: Some(millis(self.election_max) * 3),
            backoff: "50ms 100ms 200ms ...500ms".to_owned(),
            ..Config::default()
        };
        config.validate().map_err(|error| Error::Settings(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid() {
        let settings = Settings::default();
        settings.validate().unwrap();
        let config = settings.config("c".into()).unwrap();
        assert_eq!((config.enable_pre_vote, config.enable_leader_restore), (Some(true), Some(false)));
    }

    #[test]
    fn contradictions_are_named() {
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.validate().unwrap_err().to_string()
        };
        assert!(refused(|s| s.heartbeat = Duration::from_millis(181)).contains("a third of election_min 540ms"));
        assert!(refused(|s| s.election_max = s.election_min).contains("not below election_max"));
        assert!(refused(|s| s.append_window = 0).contains("append_window"));
        assert!(refused(|s| s.frame_bytes = 10).contains("frame_bytes 10"));
        assert!(refused(|s| s.snapshot_piece_bytes = 3 << 20).contains("snapshot_piece_bytes"));
    }
}
