//! A shard that does what a driver may rely on, and nothing else: maps, and the assertions of P5 on what it is told.

use petuum_types::command::{ShardAnswer, ShardCommand, WorkerKey};
use petuum_types::{Clock, Incarnation, JobId, MapEpoch, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// What a shard keeps of a worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) version: Incarnation,
    /// Who may tick: nobody between a fence and its settling.
    pub(crate) speaker: Option<Incarnation>,
    pub(crate) live: bool,
    pub(crate) clock: Clock,
}

/// A shard that does what a driver may rely on, and nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shard {
    pub(crate) epoch: MapEpoch,
    pub(crate) jobs: BTreeSet<JobId>,
    pub(crate) tables: BTreeSet<TableId>,
    dropped: BTreeSet<TableId>,
    pub(crate) sessions: BTreeMap<WorkerKey, Session>,
    pub(crate) min_clock: Clock,
}

impl Shard {
    pub(crate) fn apply(&mut self, command: &ShardCommand) -> ShardAnswer {
        match command.clone() {
            ShardCommand::Own { epoch, .. } => self.epoch = self.epoch.max(epoch),
            ShardCommand::OpenJob { .. } if self.epoch == MapEpoch(0) => {
                return ShardAnswer::Refused("no slots".into());
            }
            ShardCommand::OpenJob { job, .. } => {
                self.jobs.insert(job);
            }
            ShardCommand::CreateTable(schema) if !self.jobs.contains(&schema.job) => {
                return ShardAnswer::Refused("no job".into());
            }
            ShardCommand::CreateTable(schema) => {
                if !self.dropped.contains(&schema.id) {
                    self.tables.insert(schema.id);
                }
            }
            ShardCommand::DropTable(table) => {
                self.tables.remove(&table);
                self.dropped.insert(table);
            }
            ShardCommand::Fence { worker, incarnation, admit } => return self.fence(worker, incarnation, admit),
            ShardCommand::Settle { worker, incarnation, clock, keep } => {
                let session = self.sessions.entry(worker).or_default();
                if session.version > incarnation {
                    return ShardAnswer::Stale { incarnation: session.version };
                }
                assert_eq!(session.version, incarnation, "P5: settled before it was fenced");
                if keep && session.speaker.is_none() {
                    assert!(session.live && session.clock <= clock, "P5: C {clock} below {session:?}");
                    (session.clock, session.speaker) = (clock, Some(incarnation));
                } else if !keep {
                    assert!(session.clock <= clock, "P5: C {clock} below {session:?}");
                    (session.clock, session.live) = (clock, false);
                }
            }
        }
        self.advance();
        ShardAnswer::Done
    }

    fn fence(&mut self, worker: WorkerKey, incarnation: Incarnation, admit: bool) -> ShardAnswer {
        if !self.jobs.contains(&worker.job) {
            return ShardAnswer::Refused("no job".into());
        }
        let min_clock = self.min_clock;
        let session = self.sessions.entry(worker).or_default();
        if session.version > incarnation {
            return ShardAnswer::Stale { incarnation: session.version };
        }
        if session.version < incarnation {
            (session.version, session.speaker) = (incarnation, None);
            if admit && !session.live {
                (session.live, session.clock) = (true, session.clock.max(min_clock));
            }
        }
        ShardAnswer::Clock(session.clock)
    }

    /// A tick of a process; `false` if it does not speak for the worker here.
    pub(crate) fn tick(&mut self, worker: WorkerKey, incarnation: Incarnation) -> bool {
        let speaks = self.sessions.get_mut(&worker).filter(|s| s.live && s.speaker == Some(incarnation));
        let Some(session) = speaks else { return false };
        session.clock = session.clock.next();
        self.advance();
        true
    }

    fn advance(&mut self) {
        let live = self.sessions.values().filter(|s| s.live).map(|s| s.clock).min();
        self.min_clock = self.min_clock.max(live.unwrap_or(Clock::ZERO));
    }
}
