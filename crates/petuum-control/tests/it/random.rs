//! Random scripts: calls, ticks, leader changes, delays, repeats and losses in any order. The harness checks every
//! invariant after every entry; at the end all faults stop and everything outstanding must come to an end (G8).

use crate::harness::{JOB, World, create_job, create_table, key, register};
use petuum_control::{Control, ControlCommand, Driver, Errand, EvictReason, Phase, RegistrationStatus, duties};
use petuum_types::command::ShardAnswer;
use petuum_types::{Clock, Generation, Incarnation, JobId, LogIndex, MapEpoch, RequestId, TableId, WorkerId};
use proptest::prelude::*;

const WORKERS: u32 = 2;
const SHARDS: u32 = 2;

#[derive(Clone, Debug)]
enum Step {
    Register {
        worker: u32,
        rejoin: bool,
    },
    /// A repeat of an earlier call, possibly long ago.
    Repeat(usize),
    Evict {
        worker: u32,
        named: bool,
        reason: EvictReason,
    },
    /// The leader puts what is outstanding on the wire.
    Send,
    /// One message on the wire arrives; it may stay there as a repeat, and its answer may be lost.
    Arrive {
        which: usize,
        stays: bool,
        answered: bool,
    },
    Lose(usize),
    Propose,
    /// What the leader proposed comes through twice, or after another leader's.
    ProposeTwice,
    NewLeader,
    /// The leader's state stays behind the log from here on, until the next leader.
    Lag,
    Tick {
        shard: u32,
        worker: u32,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let reason = prop_oneof![Just(EvictReason::Operator), Just(EvictReason::LeaseExpired), Just(EvictReason::Left)];
    prop_oneof![
        3 => (0..WORKERS, any::<bool>()).prop_map(|(worker, rejoin)| Step::Register { worker, rejoin }),
        1 => (0usize..64).prop_map(Step::Repeat),
        1 => (0..WORKERS, any::<bool>(), reason).prop_map(|(worker, named, reason)| Step::Evict { worker, named, reason }),
        8 => Just(Step::Send),
        24 => (0usize..64, any::<bool>(), any::<bool>())
            .prop_map(|(which, stays, answered)| Step::Arrive { which, stays, answered }),
        2 => (0usize..64).prop_map(Step::Lose),
        8 => Just(Step::Propose),
        1 => Just(Step::ProposeTwice),
        1 => Just(Step::NewLeader),
        1 => Just(Step::Lag),
        6 => (0..SHARDS, 0..WORKERS).prop_map(|(shard, worker)| Step::Tick { shard, worker }),
    ]
}

/// A world with a wire and a leader whose state may lag.
struct Chaos {
    world: World,
    wire: Vec<Errand>,
    calls: Vec<ControlCommand>,
    lagging: Option<Control>,
}

impl Chaos {
    fn leader_state(&self) -> Control {
        self.lagging.clone().unwrap_or_else(|| self.world.state.clone())
    }

    fn speaker(&self, worker: u32) -> Option<Incarnation> {
        self.world.state.worker(JOB, WorkerId(worker)).map(|record| record.speaker())
    }

    fn call(&mut self, command: ControlCommand) {
        self.calls.push(command.clone());
        self.world.log(command);
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Register { worker, rejoin } => {
                let request = self.world.request();
                self.call(register(request, worker, rejoin));
            }
            Step::Repeat(which) if !self.calls.is_empty() => {
                let call = self.calls[which % self.calls.len()].clone();
                self.world.log(call);
            }
            Step::Evict { worker, named, reason } => {
                let incarnation = self.speaker(worker).filter(|_| named);
                let request = self.world.request();
                self.call(ControlCommand::Evict { request, job: JOB, worker: WorkerId(worker), incarnation, reason });
            }
            Step::Send => {
                let state = self.leader_state();
                let room = 64usize.saturating_sub(self.wire.len());
                self.wire.extend(self.world.driver.step(&state).into_iter().take(room));
            }
            Step::Arrive { which, stays, answered } if !self.wire.is_empty() => self.arrive(which, stays, answered),
            Step::Lose(which) if !self.wire.is_empty() => {
                self.wire.swap_remove(which % self.wire.len());
            }
            Step::Propose => self.propose(1),
            Step::ProposeTwice => self.propose(2),
            Step::NewLeader => (self.world.driver, self.lagging) = (Driver::new(), None),
            Step::Lag => self.lagging = Some(self.leader_state()),
            Step::Tick { shard, worker } => self.tick(shard, worker),
            Step::Repeat(_) | Step::Arrive { .. } | Step::Lose(_) => {}
        }
    }

    fn arrive(&mut self, which: usize, stays: bool, answered: bool) {
        let at = which % self.wire.len();
        let errand = if stays { self.wire[at].clone() } else { self.wire.swap_remove(at) };
        let answer: ShardAnswer = self.world.deliver(&errand);
        if answered {
            let state = self.leader_state();
            self.world.driver.answer(&state, &errand.id, answer);
        }
    }

    fn propose(&mut self, times: usize) {
        let state = self.leader_state();
        let proposals = self.world.driver.proposals(&state);
        for command in proposals.iter().cycle().take(proposals.len() * times) {
            self.world.log(command.clone());
        }
    }

    /// A process ticks only once it has been given a start clock.
    fn tick(&mut self, shard: u32, worker: u32) {
        let live = self.world.state.worker(JOB, WorkerId(worker)).map(|record| *record.phase());
        if let Some(Phase::Live { incarnation, .. }) = live
            && self.world.state.job(JOB).is_some_and(|job| job.has_started())
        {
            assert!(self.world.tick(shard, worker, incarnation), "G8: a live process is not listened to");
        }
    }

    /// Whoever is live is live, at its start clock or later, in every shard; whoever is removed is out everywhere.
    fn check_end(&self) {
        assert!(duties(&self.world.state).is_empty());
        for (id, worker) in self.world.state.workers(JOB) {
            let sessions = self.world.shards.values().map(|shard| &shard.sessions[&key(id.0)]);
            for session in sessions {
                match *worker.phase() {
                    Phase::Live { incarnation, start } => {
                        assert!(session.live && session.speaker == Some(incarnation) && session.clock >= start);
                    }
                    Phase::Removed { at, .. } => assert!(!session.live && session.clock == at),
                    Phase::Transition(transition) => panic!("stuck: {transition:?}"),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn faults_of_every_kind_break_no_invariant_and_leave_nothing_stuck(steps in prop::collection::vec(step(), 0..150)) {
        let mut chaos =
            Chaos { world: World::new(SHARDS, WORKERS), wire: Vec::new(), calls: Vec::new(), lagging: None };
        for step in steps {
            chaos.take(step);
        }
        chaos.lagging = None;
        chaos.world.run();
        chaos.check_end();
        // Once all have come back, everybody is told to go on, and at equal clocks in all shards.
        let mut requests = Vec::new();
        for worker in 0..WORKERS {
            requests.push(chaos.world.register_as(worker, true).0);
        }
        chaos.world.run();
        for (worker, request) in (0..WORKERS).zip(requests) {
            let RegistrationStatus::Ready { start, .. } = chaos.world.registration(worker, request) else {
                panic!("worker {worker}: {:?}", chaos.world.registration(worker, request));
            };
            prop_assert_eq!(chaos.world.clocks(worker), vec![start.0; SHARDS as usize]);
        }
        // What is still on the wire is of the past, and changes nothing.
        let before: Vec<_> = (0..WORKERS).map(|worker| chaos.world.clocks(worker)).collect();
        for errand in std::mem::take(&mut chaos.wire) {
            chaos.world.deliver(&errand);
        }
        prop_assert_eq!(before, (0..WORKERS).map(|worker| chaos.world.clocks(worker)).collect::<Vec<_>>());
        chaos.check_end();
    }

    #[test]
    fn no_command_panics_and_every_state_survives_its_snapshot(commands in prop::collection::vec(command(), 0..60)) {
        let mut world = World::new(SHARDS, WORKERS);
        for command in commands {
            world.log(command);
            let decoded = Control::decode(&world.state.encode()).unwrap();
            prop_assert_eq!(&decoded, &world.state);
        }
        let mut replayed = world.state.clone();
        replayed.apply(LogIndex(10_000), &create_job(1, "job", WORKERS));
        prop_assert_eq!(replayed.jobs().count(), world.state.jobs().count());
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        prop_assert!(Control::decode(&bytes).is_err());
    }
}

/// Any command, sensible or not, from small ranges so that they meet.
fn command() -> impl Strategy<Value = ControlCommand> {
    let keyed = (1u64..3, 1u64..3, 0u32..3, 0u64..8, 0u64..5, 0u64..3);
    prop_oneof![
        (0u128..9, 0u32..4, any::<bool>()).prop_map(|(r, w, rejoin)| register(RequestId(r), w, rejoin)),
        (0u128..9, 0u32..4, prop::option::of(0u64..8)).prop_map(|(r, w, incarnation)| ControlCommand::Evict {
            request: RequestId(r),
            job: JOB,
            worker: WorkerId(w),
            incarnation: incarnation.map(Incarnation),
            reason: EvictReason::Operator,
        }),
        (0u128..9, 0u32..3).prop_map(|(r, width)| create_table(r, "t", width)),
        (0u128..9, 0u32..3).prop_map(|(r, workers)| create_job(r, "job", workers)),
        (0u128..9).prop_map(|r| ControlCommand::DropTable { request: RequestId(r), job: JOB, name: "t".into() }),
        (0u32..3, 0u64..3).prop_map(|(t, e)| ControlCommand::TableReady { table: TableId(t), epoch: MapEpoch(e) }),
        (0u32..3, 0u64..3).prop_map(|(t, e)| ControlCommand::TableGone { table: TableId(t), epoch: MapEpoch(e) }),
        (0u64..3, 0u64..3).prop_map(|(j, e)| ControlCommand::JobReady { job: JobId(j), epoch: MapEpoch(e) }),
        keyed.clone().prop_map(|(j, g, w, incarnation, clock, epoch)| ControlCommand::RecordClock {
            key: worker_key(j, g, w),
            incarnation: Incarnation(incarnation),
            clock: Clock(clock),
            epoch: MapEpoch(epoch),
        }),
        keyed.prop_map(|(j, g, w, incarnation, _, epoch)| ControlCommand::RecordSettled {
            key: worker_key(j, g, w),
            incarnation: Incarnation(incarnation),
            epoch: MapEpoch(epoch),
        }),
    ]
}

const fn worker_key(job: u64, generation: u64, worker: u32) -> petuum_types::command::WorkerKey {
    petuum_types::command::WorkerKey { job: JobId(job), generation: Generation(generation), worker: WorkerId(worker) }
}
