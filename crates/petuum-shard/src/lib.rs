//! The shard state machine: tables, staging, clocks, sessions, reads; pure
