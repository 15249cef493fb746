//! What can happen in a world, and when everything is done.
//!
//! Left out is what makes no difference: a loss that is noticed and mended by sending the same again is a delay, and a
//! message that is only asked to come again might as well have waited (a few of them are let through all the same).

use super::job::{SHARDS, WORKERS};
use super::machines::Machines;
use super::oracle;
use super::packet::Packet;
use super::results::{Ruling, Turn};
use super::session::End;
use super::world::{Process, Stage, World};
use petuum_control::RegistrationStatus;

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A packet arrives and is dealt with.
    Deliver(u32),
    /// A packet is lost, and its sender hears of it.
    Lose(u32),
    /// A message arrives and the answer is lost; its sender hears that, and not what was answered.
    LoseAnswer(u32),
    /// A packet arrives, and a copy of it will once more.
    DeliverTwice(u32),
    /// A process reads, computes and ends its clock.
    Turn(usize),
    /// A new process registers as worker 0.
    Restart,
    /// The lease of the worker that may be evicted ends.
    Expire,
    /// A removed worker comes back.
    Rejoin(usize),
    /// The control group has a new leader.
    Failover,
    /// Nothing else can happen, and it should.
    Stick,
}

/// Everything that can happen.
pub(super) fn actions(m: &Machines, world: &World, out: &mut Vec<Action>) {
    if world.flaw.is_some() {
        return;
    }
    let before = out.len();
    for packet in world.network.distinct() {
        if can_arrive(m, world, packet) {
            out.push(Action::Deliver(packet));
            if world.left.repeats > 0 {
                out.push(Action::DeliverTwice(packet));
            }
        }
        if world.left.losses > 0 && loss_matters(m, world, packet) {
            out.push(Action::Lose(packet));
        }
        if world.left.losses > 0 && answer_can_be_lost(m, world, packet) {
            out.push(Action::LoseAnswer(packet));
        }
    }
    for (at, process) in world.processes.iter().enumerate() {
        if let Some(session) = process.session()
            && matches!(m.turn(session, world.shards), Turn::Go(_))
        {
            out.push(Action::Turn(at));
        }
    }
    if world.left.takeovers > 0 && can_restart(m, world) {
        out.push(Action::Restart);
    }
    let facts = m.control_facts(world.control);
    if world.left.evictions > 0 && facts.live[usize::from(m.bounds.evicted)].is_some() {
        out.push(Action::Expire);
    }
    if world.left.rejoins > 0 {
        let removed = |at: &usize| world.processes[*at].stage == Stage::Ended(End::Removed);
        out.extend((0..WORKERS).filter(removed).map(Action::Rejoin));
    }
    if world.left.failovers > 0 {
        out.push(Action::Failover);
    }
    if out.len() == before && !is_done(m, world) {
        out.push(Action::Stick);
    }
}

/// What would only be asked to come again waits in the network, but for as many as the bounds say.
fn can_arrive(m: &Machines, world: &World, packet: u32) -> bool {
    match m.packets.get(packet) {
        Packet::Message { shard, .. } => {
            world.left.early > 0 || !m.to_shard(world.shards[usize::from(*shard)], packet).early
        }
        Packet::Register { .. } | Packet::Evict(_) => m.to_control(world.control, packet).1 != Ruling::Early,
        _ => true,
    }
}

/// A loss that is noticed and mended by sending the same again is a delay, unless it had taken effect, or more than the
/// lost packet is sent again.
fn loss_matters(m: &Machines, world: &World, packet: u32) -> bool {
    match m.packets.get(packet) {
        Packet::Message { from, .. } | Packet::Reply { to: from, .. } => world.running(*from).is_some(),
        Packet::Answer { .. } => true,
        Packet::Errand { .. } | Packet::Record(_) | Packet::Register { .. } | Packet::Evict(_) => false,
    }
}

/// Answers that take time are lost by themselves.
fn answer_can_be_lost(m: &Machines, world: &World, packet: u32) -> bool {
    let is_message = matches!(m.packets.get(packet), Packet::Message { .. });
    is_message && !m.bounds.answers_travel && loss_matters(m, world, packet) && can_arrive(m, world, packet)
}

/// A process restarts once its registration has arrived: one that overtakes a later one is its later takeover.
fn can_restart(m: &Machines, world: &World) -> bool {
    let process = &world.processes[0];
    match process.stage {
        Stage::Running { .. } => true,
        Stage::Registering => m.registration(world.control, process.id) != RegistrationStatus::Unknown,
        Stage::Absent | Stage::Ended(_) => false,
    }
}

/// Whether everything has come to its end: nothing on its way, every worker finished or told that it is out, and every
/// update in its place.
fn is_done(m: &Machines, world: &World) -> bool {
    if !world.network.is_empty() {
        return false;
    }
    let facts = world.shards.map(|shard| m.facts(shard));
    let finished = |process: &Process| match process.stage {
        Stage::Absent | Stage::Ended(_) => true,
        Stage::Registering => false,
        Stage::Running { session, .. } => {
            let session = m.sessions.get(session);
            session.clock() == m.bounds.clocks && session.is_flushed()
        }
    };
    world.processes.iter().all(finished)
        && (0..WORKERS).all(|worker| {
            let process = &world.processes[worker];
            match process.stage {
                Stage::Running { start, .. } => {
                    let of = (worker, usize::from(process.id.attempt));
                    let live = (0..SHARDS).all(|shard| facts[shard].members[worker].live);
                    // A worker that was removed after its last clock has finished too.
                    let out = m.control_facts(world.control).live[worker].is_none();
                    (live || out) && oracle::judge_finish([&facts[0], &facts[1]], &m.plan, of, start..m.bounds.clocks)
                }
                Stage::Ended(End::Removed) => m.control_facts(world.control).live[worker].is_none(),
                Stage::Absent | Stage::Registering | Stage::Ended(End::Replaced) => false,
            }
        })
}
