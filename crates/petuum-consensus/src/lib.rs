//! Raft groups: openraft over the shared log and the peers' connections
