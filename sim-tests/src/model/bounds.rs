//! How large a model is: what may go wrong in it and how often.

use std::fmt;

/// Clocks a model can have.
pub const CLOCKS_MAX: u8 = 4;
/// Processes of one worker, one after the other, that a model can have.
pub const ATTEMPTS_MAX: u8 = 4;

/// What becomes of the control group's leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Failover {
    /// It stays.
    Never,
    /// Once, a new one takes over with empty hands; answers to the old one reach nobody.
    Restart,
    /// Once, a new one begins while the old one goes on.
    Overlap,
}

/// What becomes of the process whose successor registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Predecessor {
    /// It is dead; what it sent is still on its way.
    Crashed,
    /// It lives and goes on until it is told.
    Rival,
}

/// A wrong protocol, to show that the check finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// A client that ticks before shard 1 has acknowledged its part (against P3).
    TicksBeforeAllStaged,
    /// A driver that takes the least of the shards' clocks for C (against P5).
    LeastClock,
    /// A shard that answers a fence but logs it only with the settle (against P5).
    NoFence,
    /// A restarted process that goes on under its predecessor's incarnation, without registering (against P5).
    NoRegistration,
}

/// The bounds of one model; every order of events within them is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Staleness of the table; workers read every row of it before each clock.
    pub staleness: u32,
    /// Clocks each worker finishes, at most [`CLOCKS_MAX`].
    pub clocks: u8,
    /// Whether a clock's updates lie all in one shard (shard 0 for even clocks, 1 for odd ones), so that stage and tick
    /// are one message (P3); otherwise each clock adds to a row of every shard.
    pub one_shard_clocks: bool,
    /// Whether the workers have joined when the model begins; otherwise their registrations are on their way.
    pub joined: bool,
    /// How often worker 0 restarts, anywhere, with other updates.
    pub takeovers: u8,
    /// What becomes of its process.
    pub predecessor: Predecessor,
    /// How often worker `evicted` loses its lease.
    pub evictions: u8,
    /// Who.
    pub evicted: u8,
    /// How often a removed worker re-joins.
    pub rejoins: u8,
    /// How many packets arrive twice.
    pub repeats: u8,
    /// How many packets are lost.
    pub losses: u8,
    /// How many messages arrive before what they need: out of their sequence, or between fence and settle. Others of
    /// that kind wait in the network.
    pub early: u8,
    /// Whether answers of shards take time; otherwise they arrive with what they answer.
    pub answers_travel: bool,
    /// The control leader.
    pub failover: Failover,
    /// A wrong protocol.
    pub mutant: Option<Mutant>,
}

impl Bounds {
    /// Two workers, two shards, two clocks, and nothing goes wrong but that messages overtake each other.
    #[must_use]
    pub const fn calm(staleness: u32) -> Self {
        Self {
            staleness,
            clocks: 2,
            one_shard_clocks: false,
            joined: true,
            takeovers: 0,
            predecessor: Predecessor::Crashed,
            evictions: 0,
            evicted: 0,
            rejoins: 0,
            repeats: 0,
            losses: 0,
            early: 0,
            answers_travel: true,
            failover: Failover::Never,
            mutant: None,
        }
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s={} clocks={}", self.staleness, self.clocks)?;
        let counts = [
            ("takeovers", self.takeovers),
            ("evictions", self.evictions),
            ("rejoins", self.rejoins),
            ("repeats", self.repeats),
            ("losses", self.losses),
            ("early", self.early),
        ];
        for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, " {name}={count}")?;
        }
        if self.takeovers > 0 {
            write!(f, " predecessor={:?}", self.predecessor)?;
        }
        if self.failover != Failover::Never {
            write!(f, " failover={:?}", self.failover)?;
        }
        if !self.joined {
            write!(f, " joining")?;
        }
        if !self.answers_travel {
            write!(f, " answers-at-once")?;
        }
        if self.one_shard_clocks {
            write!(f, " one-shard-clocks")?;
        }
        Ok(())
    }
}
