//! The kinds of faults of a scenario: those that any cluster can have, and those that need to know the program.

use petuum_sim::faults;

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// One that strikes whatever program runs.
    Any(faults::Kind),
    /// A worker is killed between its updates and `clock()`.
    RestartBeforeClock,
    /// A worker is killed when `clock()` has returned, while its parts and ticks are on their way.
    RestartAfterClock,
    /// A worker computes slowly.
    Straggler,
    /// A second process registers as a worker that is alive: the first becomes a zombie.
    Rival,
    /// An operator removes a worker that is alive; it comes back.
    Evict,
    /// A worker is dead for about its lease; it comes back.
    OutliveLease,
    /// A crowd of readers asks for what is there and for what will never be.
    Overload,
}

impl Kind {
    /// Those of the first scenario: each once.
    pub(in crate::scenarios) const FIRST: [Self; 5] = [
        Self::Any(faults::Kind::KillLeader),
        Self::Any(faults::Kind::PowerLoss),
        Self::Any(faults::Kind::CutWorker),
        Self::RestartBeforeClock,
        Self::RestartAfterClock,
    ];

    /// Those that need to know the program.
    const OF_PROGRAM: [Self; 7] = [
        Self::RestartBeforeClock,
        Self::RestartAfterClock,
        Self::Straggler,
        Self::Rival,
        Self::Evict,
        Self::OutliveLease,
        Self::Overload,
    ];

    /// All.
    pub fn all() -> impl Iterator<Item = Self> {
        faults::Kind::ALL.into_iter().map(Self::Any).chain(Self::OF_PROGRAM)
    }

    /// Its name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Any(kind) => kind.name(),
            Self::RestartBeforeClock => "worker-restarted-before-clock",
            Self::RestartAfterClock => "worker-restarted-after-clock",
            Self::Straggler => "worker-slow",
            Self::Rival => "worker-doubled",
            Self::Evict => "worker-evicted",
            Self::OutliveLease => "worker-outlived",
            Self::Overload => "overload",
        }
    }

    /// Where it is made.
    #[must_use]
    pub const fn made(self) -> &'static str {
        match self {
            Self::Any(kind) => kind.made(),
            Self::RestartBeforeClock | Self::RestartAfterClock | Self::OutliveLease => "process",
            Self::Straggler => "the worker's program",
            Self::Rival => "a second host",
            Self::Evict => "an operator's call",
            Self::Overload => "a client's calls",
        }
    }

    /// What of the real thing it is not.
    #[must_use]
    pub const fn approximation(self) -> &'static str {
        match self {
            Self::Any(kind) => kind.approximation(),
            Self::Straggler => "a slow program, not a starved processor",
            Self::Overload => "reads only, and no processor gets busy: time stands still meanwhile",
            _ => "none known",
        }
    }

    /// Whether a worker may be removed from its job by it.
    #[must_use]
    pub const fn removes(self) -> bool {
        matches!(self, Self::Evict | Self::OutliveLease)
    }

    /// How many nodes it needs.
    #[must_use]
    pub const fn nodes(self) -> u32 {
        match self {
            Self::Any(kind) => kind.nodes(),
            _ => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn kinds_have_names_of_their_own() {
        let mut names: Vec<&str> = Kind::all().map(Kind::name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(Kind::all().is_sorted(), "in the order of their declaration");
        // None is left out: a new kind does not compile below without a place.
        assert_eq!(Kind::OF_PROGRAM.len(), Kind::OF_PROGRAM.iter().map(|kind| of_program(*kind)).max().unwrap() + 1);
    }

    /// Its place among those that know the program.
    const fn of_program(kind: Kind) -> usize {
        match kind {
            Kind::Any(_) | Kind::RestartBeforeClock => 0,
            Kind::RestartAfterClock => 1,
            Kind::Straggler => 2,
            Kind::Rival => 3,
            Kind::Evict => 4,
            Kind::OutliveLease => 5,
            Kind::Overload => 6,
        }
    }
}
