//! A global state: numbers of machines and packets, and what may still go wrong.

use super::bounds::{Bounds, Failover};
use super::job::{SHARDS, WORKERS};
use super::oracle::Flaw;
use super::packet::ProcessId;
use super::session::End;

/// Leaders of the control group that a model can have.
pub(super) const TERMS: usize = 2;
/// Where a predecessor that lives on is kept; the workers' latest processes stand at their numbers.
pub(super) const RIVAL: usize = WORKERS;

/// A state of the whole system.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(super) shards: [u32; SHARDS],
    pub(super) control: u32,
    /// By term; [`super::results::NOTHING`] if there is none.
    pub(super) drivers: [u32; TERMS],
    pub(super) processes: [Process; WORKERS + 1],
    pub(super) network: Network,
    pub(super) left: Left,
    /// See [`super::oracle::Known`].
    pub(super) acknowledged: [u16; WORKERS],
    /// See [`super::oracle::Known`].
    pub(super) skips_from: [Option<u8>; WORKERS],
    pub(super) flaw: Option<Flaw>,
}

/// A process of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) id: ProcessId,
    pub(super) stage: Stage,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Stage {
    /// There is none.
    Absent,
    /// Its registration is not answered.
    Registering,
    /// It takes part, from clock `start` on.
    Running { session: u32, start: u8 },
    /// It was told that it speaks for the worker no longer.
    Ended(End),
}

impl Process {
    pub(super) const fn absent() -> Self {
        Self { id: ProcessId { worker: 0, attempt: 0 }, stage: Stage::Absent }
    }

    pub(super) const fn session(&self) -> Option<u32> {
        match self.stage {
            Stage::Running { session, .. } => Some(session),
            _ => None,
        }
    }
}

/// What may still go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Left {
    pub(super) takeovers: u8,
    pub(super) evictions: u8,
    pub(super) rejoins: u8,
    pub(super) repeats: u8,
    pub(super) losses: u8,
    pub(super) early: u8,
    pub(super) failovers: u8,
}

impl Left {
    pub(super) fn of(bounds: &Bounds) -> Self {
        Self {
            takeovers: bounds.takeovers,
            evictions: bounds.evictions,
            rejoins: bounds.rejoins,
            repeats: bounds.repeats,
            losses: bounds.losses,
            early: bounds.early,
            failovers: u8::from(bounds.failover != Failover::Never),
        }
    }
}

/// Packets on their way, as a sorted list with repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Network(Vec<u32>);

impl Network {
    pub(super) fn add(&mut self, packet: u32) {
        let at = self.0.partition_point(|other| *other < packet);
        self.0.insert(at, packet);
    }

    pub(super) fn remove(&mut self, packet: u32) {
        let at = self.0.binary_search(&packet).expect("a packet that is on its way");
        self.0.remove(at);
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&u32) -> bool) {
        self.0.retain(keep);
    }

    pub(super) fn contains(&self, packet: u32) -> bool {
        self.0.binary_search(&packet).is_ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().copied()
    }

    /// Each packet once, however often it is on its way.
    pub(super) fn distinct(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.chunk_by(|a, b| a == b).map(|same| same[0])
    }
}

impl World {
    /// Marks the first guarantee that is broken; nothing happens after.
    pub(super) fn note(&mut self, flaw: Option<Flaw>) {
        self.flaw = self.flaw.or(flaw);
    }

    /// Where a running process of this identity stands.
    pub(super) fn running(&self, id: ProcessId) -> Option<(usize, u32)> {
        self.processes.iter().enumerate().find_map(|(at, process)| match process.stage {
            Stage::Running { session, .. } if process.id == id => Some((at, session)),
            _ => None,
        })
    }
}
