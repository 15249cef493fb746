//! One worker's record and the transitions between its phases (P5, P15, P17).
//!
//! ```text
//!            register                 recorded C, settled
//! (never) ────────────► Join ─────────────────────────────► Live ──register──► Takeover ──settled──► Live
//!                        │  ▲                                │                    │
//!                   evict│  │register(rejoin)                │evict               │evict
//!                        ▼  │                                ▼                    │
//!                      Remove ◄──────────────────────────────┴────────────────────┘
//!                        └──settled──► Removed{at C}
//! ```
//! A register during a join or a takeover supersedes it with a higher incarnation; an evict supersedes both. A register
//! during a removal waits (P15: no join is sent before every shard has confirmed the removal).
//!
//! Not here: the counter of incarnations (the job's) and request ids of refused calls ([`crate::answers`]).
//!
//! Invariants: incarnations of one worker strictly grow from phase to phase; `clock` is set at most once per transition;
//! `removed_at` never goes back.

use crate::command::EvictReason;
use crate::limits::REGISTRATIONS_MAX;
use petuum_types::{Clock, Incarnation, RequestId};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What a worker is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// On its way; some shard has not settled it.
    Transition(Transition),
    /// Takes part.
    Live {
        /// Who speaks for it.
        incarnation: Incarnation,
        /// The clock it was settled at: where the process starts.
        start: Clock,
    },
    /// Out; comes back only by an explicit re-join.
    Removed {
        /// C: its clock everywhere. Its updates from here on are lost.
        at: Clock,
        /// Why.
        reason: EvictReason,
        /// The removal's version.
        incarnation: Incarnation,
    },
}

/// A transition under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transition {
    /// Which.
    pub kind: TransitionKind,
    /// Its version: fences every lower one.
    pub incarnation: Incarnation,
    /// C, once every shard has fenced. Never changes.
    pub clock: Option<Clock>,
}

/// What a transition ends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TransitionKind {
    /// Live, counted anew at the shards' min clocks (P15).
    Join,
    /// Live, at the clock its predecessor reached (P5).
    Takeover,
    /// Removed.
    Remove {
        /// Why.
        reason: EvictReason,
    },
}

/// A worker's record, kept as long as the job.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Worker {
    pub(crate) phase: Phase,
    /// The latest calls that gave this worker an incarnation, oldest first; never empty. The last is the worker's
    /// speaker, also when it has been removed since.
    pub(crate) registrations: VecDeque<(RequestId, Incarnation)>,
    /// C of the last removal (P15).
    pub(crate) removed_at: Option<Clock>,
    /// Whether it was ever live (P18).
    pub(crate) settled: bool,
}

impl Phase {
    /// The worker's version: the latest incarnation, of a process or of a removal.
    #[must_use]
    pub const fn incarnation(&self) -> Incarnation {
        match self {
            Self::Transition(Transition { incarnation, .. })
            | Self::Live { incarnation, .. }
            | Self::Removed { incarnation, .. } => *incarnation,
        }
    }

    /// The transition, if one is under way.
    #[must_use]
    pub const fn transition(&self) -> Option<&Transition> {
        match self {
            Self::Transition(transition) => Some(transition),
            Self::Live { .. } | Self::Removed { .. } => None,
        }
    }
}

impl Transition {
    const fn new(kind: TransitionKind, incarnation: Incarnation) -> Self {
        Self { kind, incarnation, clock: None }
    }

    /// Whether the worker is on its way out.
    #[must_use]
    pub const fn is_removal(&self) -> bool {
        matches!(self.kind, TransitionKind::Remove { .. })
    }
}

impl Worker {
    /// A worker's first registration.
    pub(crate) fn joining(request: RequestId, incarnation: Incarnation) -> Self {
        Self {
            phase: Phase::Transition(Transition::new(TransitionKind::Join, incarnation)),
            registrations: VecDeque::from([(request, incarnation)]),
            removed_at: None,
            settled: false,
        }
    }

    /// What it is doing.
    #[must_use]
    pub const fn phase(&self) -> &Phase {
        &self.phase
    }

    /// C of the last removal, kept as long as the job (P15).
    #[must_use]
    pub const fn removed_at(&self) -> Option<Clock> {
        self.removed_at
    }

    /// Whether it was ever live.
    #[must_use]
    pub const fn was_settled(&self) -> bool {
        self.settled
    }

    /// The incarnation given to a process last, also if it has been removed since.
    ///
    /// # Panics
    /// Never: a record begins with a registration.
    #[must_use]
    pub fn speaker(&self) -> Incarnation {
        self.registrations.back().expect("a worker's record begins with a registration").1
    }

    /// What this request was given, if it registered this worker and is remembered.
    #[must_use]
    pub fn registered_by(&self, request: RequestId) -> Option<Incarnation> {
        self.registrations.iter().find(|(id, _)| *id == request).map(|(_, incarnation)| *incarnation)
    }

    /// A further registration. The caller has excluded removals under way and plain calls of removed workers.
    pub(crate) fn register(&mut self, request: RequestId, incarnation: Incarnation) {
        let kind = match self.phase {
            // The shards may have counted it or not: only a join counts a worker that is not there.
            Phase::Transition(Transition { kind: TransitionKind::Join, .. }) | Phase::Removed { .. } => {
                TransitionKind::Join
            }
            Phase::Transition(Transition { kind: TransitionKind::Takeover, .. }) | Phase::Live { .. } => {
                TransitionKind::Takeover
            }
            Phase::Transition(Transition { kind: TransitionKind::Remove { .. }, .. }) => {
                panic!("P15: {incarnation} registered before the removal was confirmed")
            }
        };
        self.supersede(Transition::new(kind, incarnation));
        if self.registrations.len() == REGISTRATIONS_MAX {
            self.registrations.pop_front();
        }
        self.registrations.push_back((request, incarnation));
    }

    /// A removal of a worker that is live or on its way in.
    pub(crate) fn remove(&mut self, reason: EvictReason, incarnation: Incarnation) {
        self.supersede(Transition::new(TransitionKind::Remove { reason }, incarnation));
    }

    fn supersede(&mut self, next: Transition) {
        let old = self.phase.incarnation();
        assert!(next.incarnation > old, "P15: {} does not fence {old}", next.incarnation);
        self.phase = Phase::Transition(next);
    }

    /// P5: records C, unless this transition is over or has one. For a worker that was removed before, C is never below
    /// that removal's (P15): a join must not run clocks again that counted once.
    pub(crate) fn record_clock(&mut self, incarnation: Incarnation, clock: Clock) -> bool {
        match &mut self.phase {
            Phase::Transition(transition) if transition.incarnation == incarnation && transition.clock.is_none() => {
                transition.clock = Some(clock.max(self.removed_at.unwrap_or(Clock::ZERO)));
                true
            }
            _ => false,
        }
    }

    /// Every shard has settled this transition at its C. `false` if it is over, or no C was recorded.
    pub(crate) fn record_settled(&mut self, incarnation: Incarnation) -> bool {
        let Phase::Transition(Transition { kind, incarnation: current, clock: Some(clock) }) = self.phase else {
            return false;
        };
        if current != incarnation {
            return false;
        }
        match kind {
            TransitionKind::Join | TransitionKind::Takeover => {
                self.phase = Phase::Live { incarnation, start: clock };
                self.settled = true;
            }
            TransitionKind::Remove { reason } => {
                self.phase = Phase::Removed { at: clock, reason, incarnation };
                self.removed_at = Some(clock);
            }
        }
        true
    }
}
