//! How a worker commits clocks (P2-P6): one lane per shard, gapless sequences, ticks only after every part is held.
//!
//! [`Committer`] is a machine that is asked, not one that calls: the transport asks [`Committer::next_message`] for each
//! shard until there is none, reports each answer to [`Committer::on_outcome`] and each broken connection to
//! [`Committer::on_lost`]. It is `Clone + Eq + Hash`, so that a model checker can drive it against the shards' machine.
//!
//! Reading order: `settings` (who speaks and the limits), `event` (what the caller is told), `pending` (one clock on its
//! way), `lane` (one shard's sequences and resending), `committer`, `answer` (outcomes), `abort` (P4; its state is `giving_up`), `progress` (what
//! a caller may ask, also whom it waits for).

mod abort;
mod answer;
mod committer;
mod counters;
mod event;
mod giving_up;
mod lane;
mod pending;
mod progress;
mod settings;
#[cfg(test)]
mod tests;

pub use committer::Committer;
pub use counters::Counters;
pub use event::Event;
pub use progress::{Waiting, WaitingFor};
pub use settings::{SessionStart, Settings};
