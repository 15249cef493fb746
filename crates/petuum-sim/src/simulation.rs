//! The loop of a simulation: turmoil's steps, with everything around them that makes one seed give one run.
//!
//! Around every call that can run a host's code it holds the thread's clock at virtual time ([`crate::clock`]), seeds
//! RocksDB's random numbers, and after it runs RocksDB's background jobs on the attached disks. It knows machines
//! (a host and its disk) and their deaths, and nothing of what runs on them.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::{Duration, SystemTime};

use crate::clock::{EPOCH_SECONDS, VirtualClock};
use crate::disk::{self, Disk, Lost};
use crate::failpoints::{Failpoints, Struck};
use crate::history::History;
use crate::panics::Inside;

/// Virtual time per step.
pub const TICK: Duration = Duration::from_millis(1);

/// Segments a connection, and connections a listener, may have waiting; over it turmoil panics.
const TCP_CAPACITY: usize = 65_536;

/// Settings of a simulation.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Decides everything that chance decides.
    pub seed: u64,
    /// Virtual time after which a simulation whose clients have not ended is an error.
    pub duration: Duration,
    /// Least and greatest latency of a message.
    pub latency: (Duration, Duration),
    /// Chance that a message breaks its link, 0 to 1. The link is repaired with the next message.
    pub fail_rate: f64,
}

impl Settings {
    /// A fast network without failures, for ten virtual minutes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            duration: Duration::from_secs(600),
            latency: (Duration::ZERO, Duration::from_millis(10)),
            fail_rate: 0.0,
        }
    }
}

/// A simulation ended with an error: a host's or client's own, or the virtual time was up.
#[derive(Debug, thiserror::Error)]
#[error("at {elapsed:?} of virtual time (seed {seed}): {message}")]
pub struct Error {
    /// The seed.
    pub seed: u64,
    /// Virtual time.
    pub elapsed: Duration,
    /// What the host, client or network said.
    pub message: String,
}

/// See the module's text. Use one per thread at a time.
pub struct Simulation<'a> {
    sim: turmoil::Sim<'a>,
    seed: u64,
    calls: u64,
    disks: BTreeMap<String, Disk>,
    hosts: Vec<String>,
    failpoints: Failpoints,
    struck: Vec<Struck>,
    history: History,
}

impl<'a> Simulation<'a> {
    /// An empty network.
    #[must_use]
    pub fn new(settings: &Settings) -> Self {
        let _clock = VirtualClock::enter(Duration::ZERO);
        let sim = turmoil::Builder::new()
            .rng_seed(settings.seed)
            .epoch(SystemTime::UNIX_EPOCH + Duration::from_secs(EPOCH_SECONDS))
            .simulation_duration(settings.duration)
            .tick_duration(TICK)
            .min_message_latency(settings.latency.0)
            .max_message_latency(settings.latency.1)
            .fail_rate(settings.fail_rate)
            .tcp_capacity(TCP_CAPACITY)
            .ephemeral_ports(1024..=65535)
            .enable_random_order()
            .build();
        let history = History::new();
        let failpoints = Failpoints::new(history.clone());
        let (disks, hosts, struck) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { sim, seed: settings.seed, calls: 0, disks, hosts, failpoints, struck, history }
    }

    /// Adds a machine: a host that can die and start again, on a disk that outlives it. `software` is called at each start.
    pub fn machine<F, Fut>(&mut self, name: &str, disk: &Disk, software: F)
    where
        F: Fn() -> Fut + 'a,
        Fut: Future<Output = turmoil::Result> + 'static,
    {
        disk.run_jobs_between_steps();
        self.disks.insert(name.to_owned(), disk.clone());
        self.add(name);
        self.inside(|sim| sim.host(name, software));
    }

    /// Adds a host without a disk that can die and start again.
    pub fn host<F, Fut>(&mut self, name: &str, software: F)
    where
        F: Fn() -> Fut + 'a,
        Fut: Future<Output = turmoil::Result> + 'static,
    {
        self.add(name);
        self.inside(|sim| sim.host(name, software));
    }

    /// Adds a client: it runs once, and when all clients have ended the simulation has.
    pub fn client<F>(&mut self, name: &str, software: F)
    where
        F: Future<Output = turmoil::Result> + 'static,
    {
        self.add(name);
        self.inside(|sim| sim.client(name, software));
    }

    fn add(&mut self, name: &str) {
        self.hosts.push(name.to_owned());
        self.failpoints.add_host(name, self.disks.get(name));
    }

    /// The failpoints of this simulation.
    #[must_use]
    pub const fn failpoints(&self) -> &Failpoints {
        &self.failpoints
    }

    /// Hosts that have lost their power at failpoints since the last call. They are down until their power is restored.
    pub fn take_struck(&mut self) -> Vec<Struck> {
        std::mem::take(&mut self.struck)
    }

    /// What has happened so far, for people.
    #[must_use]
    pub const fn history(&self) -> &History {
        &self.history
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.sim.elapsed()
    }

    /// One tick on every host. True once all clients have ended.
    ///
    /// # Errors
    /// [`Error`]: a host or client ended with an error, or the time is up.
    pub fn step(&mut self) -> Result<bool, Error> {
        let stepped = self.inside(turmoil::Sim::step);
        for (host, point) in self.failpoints.take_fired() {
            let lost = self.lose_power(&[&host]).first().copied().unwrap_or_default();
            self.struck.push(Struck { host, point, lost });
        }
        stepped.map_err(|error| Error { seed: self.seed, elapsed: self.elapsed(), message: error.to_string() })
    }

    /// Steps until all clients have ended.
    ///
    /// # Errors
    /// As [`Simulation::step`].
    pub fn run(&mut self) -> Result<(), Error> {
        while !self.step()? {}
        Ok(())
    }

    /// Steps for `time`, whether or not clients have ended.
    ///
    /// # Errors
    /// As [`Simulation::step`].
    pub fn run_for(&mut self, time: Duration) -> Result<(), Error> {
        let end = self.elapsed() + time;
        while self.elapsed() < end {
            self.step()?;
        }
        Ok(())
    }

    /// Calls turmoil with the clock and the random numbers of the simulation: for partitions, latencies, held messages.
    pub fn inside<T>(&mut self, call: impl FnOnce(&mut turmoil::Sim<'a>) -> T) -> T {
        self.calls += 1;
        disk::seed_thread(self.seed ^ self.calls.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let result = {
            let _clock = VirtualClock::enter(self.sim.elapsed());
            let _inside = Inside::enter(self.seed, &self.failpoints);
            call(&mut self.sim)
        };
        self.disks.values().for_each(Disk::step);
        result
    }

    /// Whether a host's software is running.
    pub fn is_running(&mut self, name: &str) -> bool {
        self.inside(|sim| sim.is_host_running(name))
    }

    /// Kills the process on a host, as SIGKILL does: peers see closed connections, and the disk keeps every write.
    ///
    /// # Panics
    /// If the host was not added.
    pub fn kill(&mut self, name: &str) {
        match self.disks.get(name).cloned() {
            Some(disk) => {
                disk.power_off();
                self.inside(|sim| sim.crash(name));
                disk.power_on_intact();
            }
            None => self.inside(|sim| sim.crash(name)),
        }
    }

    /// Starts a dead host again.
    ///
    /// # Panics
    /// If the host was not added.
    pub fn start(&mut self, name: &str) {
        self.inside(|sim| sim.bounce(name));
    }

    /// Takes the power of the named hosts at the same instant: they send nothing more, not even the end of connections,
    /// and their disks lose what was not durable. Returns what, in the order of `names`.
    ///
    /// # Panics
    /// If a host was not added.
    pub fn lose_power(&mut self, names: &[&str]) -> Vec<Lost> {
        for name in names {
            if let Some(disk) = self.disks.get(*name) {
                disk.power_off();
            }
        }
        let pairs = self.pairs_with(names);
        self.inside(|sim| {
            for (a, b) in &pairs {
                sim.partition(a.as_str(), b.as_str());
            }
            for name in names {
                sim.crash(*name);
            }
        });
        let seed = self.seed ^ self.calls;
        let lost = |(index, name): (usize, &&str)| {
            self.disks.get(*name).map_or_else(Lost::default, |disk| disk.power_on(mix(seed, index as u64)))
        };
        names.iter().enumerate().map(lost).collect()
    }

    /// Gives the power back: mends the links of the named hosts, all of them, and starts the hosts.
    ///
    /// # Panics
    /// If a host was not added.
    pub fn restore_power(&mut self, names: &[&str]) {
        let pairs = self.pairs_with(names);
        self.inside(|sim| {
            for (a, b) in &pairs {
                sim.repair(a.as_str(), b.as_str());
            }
            for name in names {
                sim.bounce(*name);
            }
        });
    }

    /// Every pair of hosts of which at least one is named, once.
    fn pairs_with(&self, names: &[&str]) -> Vec<(String, String)> {
        let mut pairs = Vec::new();
        for (index, a) in self.hosts.iter().enumerate() {
            for b in &self.hosts[index + 1..] {
                if names.contains(&a.as_str()) || names.contains(&b.as_str()) {
                    pairs.push((a.clone(), b.clone()));
                }
            }
        }
        pairs
    }
}

/// Two numbers into one seed that differs in all bits.
pub(crate) fn mix(seed: u64, salt: u64) -> u64 {
    fastrand::Rng::with_seed(seed.wrapping_add(salt.wrapping_mul(0x9e37_79b9_7f4a_7c15))).u64(..)
}
