//! The real machines, each distinct state kept once and each transition computed once.

use super::bounds::{Bounds, Mutant};
use super::intern::{Interner, Memo};
use super::job::{JOB, JobPlan, SHARDS, WORKERS, request_of, worker_id};
use super::oracle::{self, Flaw, Known};
use super::packet::{Packet, ProcessId};
use super::replica::{Facts, Replica};
use super::results::{ControlFacts, Driven, Judged, NOTHING, Ruling, Step, Turn};
use super::session::{End, Reaction, Session, shard_id};
use petuum_control::{Control, ControlAnswer, ControlCommand, Driver, RegistrationStatus, Standing};
use petuum_shard::{Applied, ReadOutcome, Settings, Shard};
use petuum_types::command::{ShardAnswer, ShardCommand};
use petuum_types::entry::Entry;
use petuum_types::message::WorkerMessage;
use petuum_types::outcome::{Fence, Outcome};
use petuum_types::read::{Read, ReadRefusal};
use petuum_types::{Clock, ErrorKind, Generation, LogIndex, Staleness};
use std::sync::Arc;

/// All of them.
#[derive(Debug)]
pub(super) struct Machines {
    pub(super) plan: JobPlan,
    pub(super) bounds: Bounds,
    pub(super) replicas: Interner<Replica>,
    pub(super) sessions: Interner<Session>,
    pub(super) controls: Interner<Control>,
    pub(super) drivers: Interner<Driver>,
    pub(super) packets: Interner<Packet>,
    judged: Memo<(u32, u32), Judged>,
    steps: Memo<(u32, u32, bool), Step>,
    turns: Memo<(u32, [u32; SHARDS]), Turn>,
    rulings: Memo<(u32, u32), (u32, Ruling)>,
    driven: Memo<(u8, u32, u32, u32), Driven>,
    registrations: Memo<(u32, u8, u8), RegistrationStatus>,
    control_facts: Memo<u32, ControlFacts>,
    states: Memo<([u32; SHARDS], Known), Option<Flaw>>,
}

impl Machines {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self {
            plan: JobPlan::new(bounds.staleness, bounds.one_shard_clocks),
            bounds,
            replicas: Interner::new(),
            sessions: Interner::new(),
            controls: Interner::new(),
            drivers: Interner::new(),
            packets: Interner::new(),
            judged: Memo::new(),
            steps: Memo::new(),
            turns: Memo::new(),
            rulings: Memo::new(),
            driven: Memo::new(),
            registrations: Memo::new(),
            control_facts: Memo::new(),
            states: Memo::new(),
        }
    }

    pub(super) fn new_shard(&self, shard: u8) -> u32 {
        self.replicas.id(Replica::new(Shard::new(shard_id(shard), Settings::default()), &self.plan))
    }

    pub(super) fn facts(&self, shard: u32) -> Facts {
        self.replicas.get(shard).facts
    }

    /// A message or an errand arrives at a shard and is applied.
    pub(super) fn to_shard(&self, shard: u32, packet: u32) -> Judged {
        self.judged.get((shard, packet), || match self.packets.get(packet) {
            Packet::Message { from, shard: at, message } => self.message(shard, *from, *at, message),
            Packet::Errand { term, errand } => {
                let (next, answer) = self.command(shard, &errand.command);
                let flaw = match &answer {
                    ShardAnswer::Refused(_) => Some(Flaw::Refused),
                    _ => oracle::judge_step(&self.facts(shard), &self.facts(next), None),
                };
                let void = matches!(answer, ShardAnswer::Stale { .. });
                let answer = self.packets.id(Packet::Answer { term: *term, id: errand.id, answer });
                Judged { shard: next, answer, flaw, early: false, void }
            }
            other => unreachable!("{other:?} is not for a shard"),
        })
    }

    fn message(&self, shard: u32, from: ProcessId, at: u8, message: &WorkerMessage) -> Judged {
        let replica = self.replicas.get(shard);
        let (after, applied) = replica.apply(&Entry::Messages(vec![message.clone()]));
        let Applied::Messages(mut outcomes) = applied else { unreachable!("messages are answered as messages") };
        let outcome = outcomes.pop().expect("one outcome per message");
        let next = self.replicas.id(Replica::new(after, &self.plan));
        let speaker = Some((usize::from(from.worker), message.incarnation.0));
        let flaw = oracle::judge_step(&replica.facts, &self.facts(next), speaker);
        let (early, void) = (matches!(outcome, Outcome::Retry(_)), matches!(outcome, Outcome::Fenced(_)));
        let flaw = if (early || void) && next != shard { Some(Flaw::Fencing) } else { flaw };
        let answer = self.packets.id(Packet::Reply { to: from, shard: at, sequence: message.sequence, outcome });
        Judged { shard: next, answer, flaw, early, void }
    }

    /// Applies a driver's command.
    pub(super) fn command(&self, shard: u32, command: &ShardCommand) -> (u32, ShardAnswer) {
        let replica = self.replicas.get(shard);
        if self.bounds.mutant == Some(Mutant::NoFence) {
            if let ShardCommand::Fence { worker, admit: false, .. } = command {
                let member = replica.facts.members[worker.worker.0 as usize];
                return (shard, ShardAnswer::Clock(Clock(u64::from(member.clock))));
            }
            if let ShardCommand::Settle { worker, incarnation, .. } = command {
                let fence = ShardCommand::Fence { worker: *worker, incarnation: *incarnation, admit: false };
                let (fenced, _) = self.apply_command(shard, &fence);
                return self.apply_command(fenced, command);
            }
        }
        self.apply_command(shard, command)
    }

    fn apply_command(&self, shard: u32, command: &ShardCommand) -> (u32, ShardAnswer) {
        let (after, applied) = self.replicas.get(shard).apply(&Entry::Command(command.clone()));
        let Applied::Command(answer) = applied else { unreachable!("a command is answered as a command") };
        (self.replicas.id(Replica::new(after, &self.plan)), answer)
    }

    /// A process gets a shard's answer, or hears that an answer or message was lost.
    pub(super) fn to_session(&self, session: u32, packet: u32, lost: bool) -> Step {
        self.steps.get((session, packet, lost), || {
            let mut next = self.sessions.get(session).clone();
            let mutant = self.bounds.mutant;
            let reaction = match self.packets.get(packet) {
                Packet::Reply { shard, .. } | Packet::Message { shard, .. } if lost => next.lost(*shard, mutant),
                Packet::Reply { shard, sequence, outcome, .. } => next.answered(*shard, (*sequence, outcome), mutant),
                other => unreachable!("{other:?} is not for a process"),
            };
            self.step(next, reaction)
        })
    }

    fn step(&self, session: Session, reaction: Reaction) -> Step {
        Step {
            session: self.sessions.id(session),
            sent: reaction.sent.into_iter().map(|packet| self.packets.id(packet)).collect(),
            acknowledged: reaction.acknowledged,
            end: reaction.end,
            flaw: reaction.failure.map(|_| Flaw::Refused),
        }
    }

    /// A process at its clock: it reads every row under the table's staleness, adds to them and ends the clock.
    pub(super) fn turn(&self, session: u32, shards: [u32; SHARDS]) -> Turn {
        self.turns.get((session, shards), || {
            let mut next = self.sessions.get(session).clone();
            if next.clock() >= self.bounds.clocks || !next.has_room() {
                return Turn::Wait;
            }
            for (at, shard) in shards.iter().enumerate() {
                match self.replicas.get(*shard).shard.read(&self.read(&next, at)) {
                    ReadOutcome::Answer(_) => {}
                    ReadOutcome::Wait => return Turn::Wait,
                    ReadOutcome::Refused(refusal) => return Turn::Go(refused(session, &refusal)),
                }
            }
            let reaction = next.commit(&self.plan, self.bounds.mutant);
            Turn::Go(self.step(next, reaction))
        })
    }

    fn read(&self, by: &Session, shard: usize) -> Read {
        let clock = Clock(u64::from(by.clock()));
        Read {
            job: JOB,
            generation: Generation(1),
            epoch: self.plan.map.epoch,
            reader: Some((worker_id(by.id.worker), by.incarnation)),
            table: super::job::TABLE,
            rows: vec![self.plan.rows[shard]],
            min_clock: clock.needs(Staleness(self.bounds.staleness)),
            own_clock: Clock::ZERO,
            min_index: LogIndex(0),
        }
    }

    /// A call or record enters the control group's log.
    pub(super) fn to_control(&self, control: u32, packet: u32) -> (u32, Ruling) {
        self.rulings.get((control, packet), || match self.packets.get(packet) {
            Packet::Register { command, .. } | Packet::Evict(command) | Packet::Record(command) => {
                let (next, answer) = self.decide(control, command);
                let ruling = match (command, answer) {
                    (_, ControlAnswer::Refused { kind: ErrorKind::Unavailable, .. }) => Ruling::Early,
                    (ControlCommand::Register { .. }, ControlAnswer::Refused { kind: ErrorKind::Evicted, .. }) => {
                        Ruling::Evicted
                    }
                    (ControlCommand::Evict { .. }, ControlAnswer::Refused { kind: ErrorKind::Replaced, .. }) => {
                        Ruling::Taken
                    }
                    (_, ControlAnswer::Refused { .. }) => Ruling::Refused,
                    _ => Ruling::Taken,
                };
                (next, ruling)
            }
            other => unreachable!("{other:?} is not for the control group"),
        })
    }

    pub(super) fn decide(&self, control: u32, command: &ControlCommand) -> (u32, ControlAnswer) {
        let mut next = self.controls.get(control).clone();
        let answer = next.apply(LogIndex(1), command);
        (self.controls.id(next), answer)
    }

    /// A driver looks at the state and, if there is one, takes an answer in.
    pub(super) fn drive(&self, term: u8, control: u32, driver: u32, answer: u32) -> Driven {
        self.driven.get((term, control, driver, answer), || {
            let state = self.controls.get(control);
            let mut next = self.drivers.get(driver).clone();
            if answer != NOTHING {
                match self.packets.get(answer) {
                    Packet::Answer { id, answer, .. } => next.answer(state, id, answer.clone()),
                    other => unreachable!("{other:?} is not for a driver"),
                }
            }
            let errands = next.step(state).into_iter().map(|errand| Packet::Errand { term, errand });
            let errands = errands.map(|packet| self.packets.id(packet)).collect();
            let records = next.proposals(state).into_iter().map(|c| self.packets.id(Packet::Record(c))).collect();
            Driven { driver: self.drivers.id(next), errands, records }
        })
    }

    /// How far a process's registration is.
    pub(super) fn registration(&self, control: u32, process: ProcessId) -> RegistrationStatus {
        self.registrations.get((control, process.worker, process.attempt), || {
            self.controls.get(control).registration(JOB, worker_id(process.worker), request_of(process))
        })
    }

    pub(super) fn control_facts(&self, control: u32) -> ControlFacts {
        self.control_facts.get(control, || {
            let state = self.controls.get(control);
            let mut facts = ControlFacts { live: [None; WORKERS], removed_at: [None; WORKERS] };
            for (id, worker) in state.workers(JOB) {
                let at = id.0 as usize;
                let speaker = worker.speaker();
                facts.live[at] = (state.standing(JOB, id, speaker) == Standing::Live).then_some(speaker);
                facts.removed_at[at] =
                    worker.removed_at().map(|at| u8::try_from(at.0).expect("a model has few clocks"));
            }
            facts
        })
    }

    pub(super) fn judge_state(&self, shards: [u32; SHARDS], known: Known) -> Option<Flaw> {
        self.states.get((shards, known), || {
            let facts = shards.map(|shard| self.facts(shard));
            oracle::judge_state([&facts[0], &facts[1]], &known, &self.plan, &self.bounds)
        })
    }
}

/// A process whose read is refused ends, as its client would.
fn refused(session: u32, refusal: &ReadRefusal) -> Step {
    let end = match refusal {
        ReadRefusal::Fenced(Fence::Replaced { .. }) => Some(End::Replaced),
        ReadRefusal::Fenced(Fence::Removed { .. }) => Some(End::Removed),
        _ => None,
    };
    let flaw = if end.is_none() { Some(Flaw::Refused) } else { None };
    Step { session, sent: Arc::from([]), acknowledged: 0, end, flaw }
}
