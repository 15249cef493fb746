//! What becomes of a world when something happens in it.

use super::bounds::{Failover, Mutant, Predecessor};
use super::job::{JOB, request_of, worker_id};
use super::machines::Machines;
use super::oracle::{self, Flaw, Known};
use super::packet::{Packet, ProcessId};
use super::results::{Judged, NOTHING, Ruling, Step, Turn};
use super::session::{End, Session};
use super::steps::Action;
use super::world::{Process, RIVAL, Stage, TERMS, World};
use petuum_control::{ControlCommand, Driver, RegistrationStatus};
use petuum_types::Incarnation;

/// What becomes of a world.
pub(super) fn next(m: &Machines, last: &World, action: Action) -> World {
    let mut world = last.clone();
    match action {
        Action::Deliver(packet) => {
            world.network.remove(packet);
            deliver(m, &mut world, packet);
        }
        Action::DeliverTwice(packet) => {
            world.left.repeats -= 1;
            deliver(m, &mut world, packet);
        }
        Action::Lose(packet) => {
            world.left.losses -= 1;
            world.network.remove(packet);
            lose(m, &mut world, packet);
        }
        Action::LoseAnswer(packet) => {
            world.left.losses -= 1;
            world.network.remove(packet);
            if let Packet::Message { shard, .. } = m.packets.get(packet) {
                let judged = to_shard(m, &mut world, usize::from(*shard), packet);
                world.left.early -= u8::from(judged.early);
            }
            lose(m, &mut world, packet);
        }
        Action::Turn(at) => {
            let session = world.processes[at].session().expect("only a running process has turns");
            if let Turn::Go(step) = m.turn(session, world.shards) {
                take_step(&mut world, at, &step);
            }
        }
        Action::Restart => restart(m, &mut world),
        Action::Expire => expire(m, &mut world),
        Action::Rejoin(at) => {
            world.left.rejoins -= 1;
            register(m, &mut world, at, true);
        }
        Action::Failover => {
            world.left.failovers -= 1;
            if m.bounds.failover == Failover::Restart {
                world.drivers[0] = NOTHING;
            }
            world.drivers[1] = m.drivers.id(Driver::new());
            drive(m, &mut world, 1, NOTHING);
        }
        Action::Stick => world.note(Some(Flaw::Stuck)),
    }
    tidy(m, &mut world);
    judge(m, &mut world, last);
    world
}

fn deliver(m: &Machines, world: &mut World, packet: u32) {
    match m.packets.get(packet) {
        Packet::Message { shard, .. } => {
            let judged = to_shard(m, world, usize::from(*shard), packet);
            world.left.early -= u8::from(judged.early);
            answer(m, world, judged.answer);
        }
        Packet::Errand { errand, .. } => {
            let judged = to_shard(m, world, errand.shard.0 as usize, packet);
            answer(m, world, judged.answer);
        }
        Packet::Reply { to, .. } => {
            if let Some((at, session)) = world.running(*to) {
                let step = m.to_session(session, packet, false);
                take_step(world, at, &step);
            }
        }
        Packet::Answer { term, .. } => drive(m, world, *term, packet),
        Packet::Register { from, .. } => {
            let ruling = to_control(m, world, packet);
            let process = world.processes.iter_mut().find(|p| p.id == *from && p.stage == Stage::Registering);
            if let (Ruling::Evicted, Some(process)) = (ruling, process) {
                process.stage = Stage::Ended(End::Removed);
            }
        }
        Packet::Evict(_) | Packet::Record(_) => {
            to_control(m, world, packet);
        }
    }
}

/// A shard answers; an answer to nobody is forgotten by [`tidy`].
fn answer(m: &Machines, world: &mut World, packet: u32) {
    if m.bounds.answers_travel { world.network.add(packet) } else { deliver(m, world, packet) }
}

fn to_shard(m: &Machines, world: &mut World, shard: usize, packet: u32) -> Judged {
    let judged = m.to_shard(world.shards[shard], packet);
    world.shards[shard] = judged.shard;
    world.note(judged.flaw);
    judged
}

fn to_control(m: &Machines, world: &mut World, packet: u32) -> Ruling {
    let (control, ruling) = m.to_control(world.control, packet);
    if ruling == Ruling::Refused {
        world.note(Some(Flaw::Refused));
    }
    if control != world.control {
        world.control = control;
        (0..TERMS).for_each(|term| drive(m, world, u8::try_from(term).expect("few terms"), NOTHING));
    }
    ruling
}

/// A driver sends what is not on its way: one of each errand, and one of each record.
fn drive(m: &Machines, world: &mut World, term: u8, answer: u32) {
    let driver = world.drivers[usize::from(term)];
    if driver == NOTHING {
        return;
    }
    let driven = m.drive(term, world.control, driver, answer);
    world.drivers[usize::from(term)] = driven.driver;
    for errand in driven.errands.iter() {
        let id = m.packets.get(*errand).errand();
        if !world.network.all().any(|packet| m.packets.get(packet).errand() == id) {
            world.network.add(*errand);
        }
    }
    for record in driven.records.iter() {
        let record = mutated(m, world, *record);
        if !world.network.contains(record) {
            world.network.add(record);
        }
    }
}

fn mutated(m: &Machines, world: &World, record: u32) -> u32 {
    match m.packets.get(record) {
        Packet::Record(ControlCommand::RecordClock { key, incarnation, epoch, .. })
            if m.bounds.mutant == Some(Mutant::LeastClock) =>
        {
            let clocks = world.shards.map(|shard| m.facts(shard).members[key.worker.0 as usize].clock);
            let least = u64::from(clocks.into_iter().min().expect("there are shards"));
            let clock = petuum_types::Clock(least);
            let (key, incarnation, epoch) = (*key, *incarnation, *epoch);
            m.packets.id(Packet::Record(ControlCommand::RecordClock { key, incarnation, clock, epoch }))
        }
        _ => record,
    }
}

fn lose(m: &Machines, world: &mut World, packet: u32) {
    match m.packets.get(packet) {
        Packet::Message { from, .. } | Packet::Reply { to: from, .. } => {
            if let Some((at, session)) = world.running(*from) {
                let step = m.to_session(session, packet, true);
                take_step(world, at, &step);
            }
        }
        Packet::Answer { term, .. } => drive(m, world, *term, NOTHING),
        _ => {}
    }
}

fn take_step(world: &mut World, at: usize, step: &Step) {
    world.note(step.flaw);
    let process = &mut world.processes[at];
    let id = process.id;
    if let Stage::Running { session, .. } = &mut process.stage {
        *session = step.session;
    }
    if let Some(end) = step.end {
        process.stage = Stage::Ended(end);
    }
    step.sent.iter().for_each(|packet| world.network.add(*packet));
    for clock in (0..8).filter(|clock| step.acknowledged & (1 << clock) != 0) {
        world.acknowledged[usize::from(id.worker)] |= u16::from(id.attempt + 1) << (4 * clock);
    }
}

fn restart(m: &Machines, world: &mut World) {
    world.left.takeovers -= 1;
    let old = world.processes[0];
    if m.bounds.predecessor == Predecessor::Rival && old.session().is_some() {
        world.processes[RIVAL] = old;
    }
    if m.bounds.mutant == Some(Mutant::NoRegistration)
        && let Stage::Running { session, .. } = old.stage
    {
        let session = m.sessions.get(session);
        let id = ProcessId { worker: 0, attempt: old.id.attempt + 1 };
        let start = session.acknowledged();
        let fresh = Session::new(id, session.incarnation, start, &m.plan, m.bounds.staleness);
        let start = u8::try_from(start.0).expect("a model has few clocks");
        world.processes[0] = Process { id, stage: Stage::Running { session: m.sessions.id(fresh), start } };
        return;
    }
    register(m, world, 0, false);
}

/// A worker's next process registers.
pub(super) fn register(m: &Machines, world: &mut World, at: usize, rejoin: bool) {
    let old = world.processes[at];
    let attempt = if old.stage == Stage::Absent { 0 } else { old.id.attempt + 1 };
    let from = ProcessId { worker: u8::try_from(at).expect("few workers"), attempt };
    let (request, worker) = (request_of(from), worker_id(from.worker));
    let command = ControlCommand::Register { request, job: JOB, worker, rejoin };
    world.processes[at] = Process { id: from, stage: Stage::Registering };
    world.network.add(m.packets.id(Packet::Register { from, command }));
}

fn expire(m: &Machines, world: &mut World) {
    world.left.evictions -= 1;
    let worker = m.bounds.evicted;
    let live: Option<Incarnation> = m.control_facts(world.control).live[usize::from(worker)];
    let incarnation = live.expect("only a live worker has a lease");
    let command = ControlCommand::lease_expired(JOB, worker_id(worker), incarnation);
    world.network.add(m.packets.id(Packet::Evict(command)));
}

/// Registrations are answered, and packets that nobody will ever look at are forgotten.
fn tidy(m: &Machines, world: &mut World) {
    for at in 0..world.processes.len() {
        let process = world.processes[at];
        if process.stage == Stage::Registering {
            poll(m, world, at, process.id);
        }
    }
    let mut network = std::mem::take(&mut world.network);
    network.retain(|packet| match m.packets.get(*packet) {
        Packet::Reply { to, .. } => world.running(*to).is_some(),
        Packet::Answer { term, .. } => world.drivers[usize::from(*term)] != NOTHING,
        Packet::Message { from, shard, .. } => {
            world.running(*from).is_some() || !m.to_shard(world.shards[usize::from(*shard)], *packet).void
        }
        Packet::Errand { term, errand } => {
            let shard = world.shards[errand.shard.0 as usize];
            world.drivers[usize::from(*term)] != NOTHING || !m.to_shard(shard, *packet).void
        }
        Packet::Record(_) | Packet::Register { .. } | Packet::Evict(_) => true,
    });
    world.network = network;
}

fn poll(m: &Machines, world: &mut World, at: usize, id: ProcessId) {
    match m.registration(world.control, id) {
        RegistrationStatus::Ready { incarnation, start, .. } => {
            let session = Session::new(id, incarnation, start, &m.plan, m.bounds.staleness);
            let start = u8::try_from(start.0).expect("a model has few clocks");
            world.processes[at].stage = Stage::Running { session: m.sessions.id(session), start };
            let facts = world.shards.map(|shard| m.facts(shard));
            world.note(oracle::judge_start([&facts[0], &facts[1]], usize::from(id.worker), incarnation.0, start));
        }
        RegistrationStatus::Replaced { .. } => world.processes[at].stage = Stage::Ended(End::Replaced),
        RegistrationStatus::Evicted { .. } => world.processes[at].stage = Stage::Ended(End::Removed),
        RegistrationStatus::Pending { .. } | RegistrationStatus::Unknown => {}
    }
}

fn judge(m: &Machines, world: &mut World, last: &World) {
    let removed_at = m.control_facts(world.control).removed_at;
    for (first, at) in world.skips_from.iter_mut().zip(removed_at) {
        *first = first.or(at);
    }
    let known = |world: &World| Known { acknowledged: world.acknowledged, skips_from: world.skips_from };
    let same = world.shards == last.shards && known(world) == known(last);
    if world.flaw.is_none() && !same {
        world.note(m.judge_state(world.shards, known(world)));
    }
}
