//! A cluster of real nodes, with the hosts of its workers, in one simulation.
//!
//! It starts, kills and cuts, and shows what replicas hold; what the workers compute and what must be true meanwhile is
//! the caller's. Every host has a state here (`up` or not), so that plans whose faults overlap cannot start a host twice
//! or mend a link that something else still holds cut.

mod builder;
mod faults;
mod node;
mod view;

pub use builder::ClusterBuilder;
pub use view::{NodeView, ReplicaView};

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use petuum_client::Options;
use petuum_net::transport::{ChannelSettings, Connector, channel};
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;

use self::node::Place;
use crate::disk::{Counters, Lost};
use crate::failpoints::{Failpoints, Struck};
use crate::history::{History, What};
use crate::simulation::mix;
use crate::{Error, SimConnector, Simulation};

/// The port of every node.
const PORT: u16 = 7070;

/// See the module's text.
pub struct SimCluster {
    simulation: Simulation<'static>,
    seed: u64,
    shards: u32,
    replication: u32,
    places: Vec<Rc<Place>>,
    /// Hosts by name, and whether their software has been started and not been killed since.
    up: BTreeMap<String, bool>,
    cuts: BTreeSet<(String, String)>,
    /// Hosts added by [`SimCluster::worker`], in this order.
    workers: Vec<String>,
    /// Greatest latency of a message, unless a link has its own.
    latency_max: Duration,
    /// Hosts that have lost their power: their links are cut until they get it back.
    dark: BTreeSet<String>,
}

impl SimCluster {
    /// A cluster to be described.
    #[must_use]
    pub fn builder(seed: u64) -> ClusterBuilder {
        ClusterBuilder::new(seed)
    }

    /// The network, to step it.
    pub fn simulation(&mut self) -> &mut Simulation<'static> {
        &mut self.simulation
    }

    /// The failpoints of every host, to arm them.
    #[must_use]
    pub const fn failpoints(&self) -> &Failpoints {
        self.simulation.failpoints()
    }

    /// Hosts that have lost their power at failpoints since the last call; to be asked after every step.
    /// [`SimCluster::restore_power`] brings them back.
    pub fn take_struck(&mut self) -> Vec<Struck> {
        let struck = self.simulation.take_struck();
        for Struck { host, point, .. } in &struck {
            self.up.insert(host.clone(), false);
            self.dark.insert(host.clone());
            self.note(host, What::Down { why: format!("power lost at {}", point.name()) });
        }
        struck
    }

    /// What has happened so far, for people.
    #[must_use]
    pub const fn history(&self) -> &History {
        self.simulation.history()
    }

    /// Adds to the history what happened on a host just now.
    pub fn note(&self, host: &str, what: What) {
        self.history().note(self.elapsed(), host, what);
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.simulation.elapsed()
    }

    /// The nodes' hosts, `node-1` and so on; node ids are given in this order.
    #[must_use]
    pub fn nodes(&self) -> Vec<String> {
        self.places.iter().map(|place| place.name.clone()).collect()
    }

    /// The workers' hosts, in the order in which they were added.
    #[must_use]
    pub fn workers(&self) -> Vec<String> {
        self.workers.clone()
    }

    /// How many shards there are: `0..shards`.
    #[must_use]
    pub const fn shards(&self) -> u32 {
        self.shards
    }

    /// The nodes' addresses, in the same order.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.places.iter().map(|place| place.address()).collect()
    }

    /// An error of the simulation at the present time.
    #[must_use]
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error { seed: self.seed, elapsed: self.elapsed(), message: message.into() }
    }

    /// Steps until `done`, which is asked after every step.
    ///
    /// # Errors
    /// As [`Simulation::step`]; also if `within` has passed: it names `what`, and hosts that are down.
    pub fn step_until(
        &mut self,
        what: &str,
        within: Duration,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Result<(), Error> {
        let end = self.elapsed() + within;
        while !done(self) {
            if self.elapsed() >= end {
                return Err(self.waited(within, what));
            }
            self.simulation.step()?;
        }
        Ok(())
    }

    /// What is said when something has not come about in time.
    pub(crate) fn waited(&self, within: Duration, what: &str) -> Error {
        let down: Vec<&str> = self.up.iter().filter(|(_, up)| !**up).map(|(host, _)| host.as_str()).collect();
        let down = if down.is_empty() { String::new() } else { format!("; down: {}", down.join(", ")) };
        self.error(format!("waited {within:?} for {what}{down}"))
    }

    /// Forms the cluster, as `petuum ctl init` does, and waits until every node takes part.
    ///
    /// # Errors
    /// As [`SimCluster::step_until`]; also what the first node answers, if it refuses.
    pub fn form(&mut self, within: Duration) -> Result<(), Error> {
        let request = wire::InitRequest {
            format: petuum_net::FORMAT,
            addresses: self.endpoints(),
            shards: self.shards,
            replication: self.replication,
        };
        self.client("operator", init(request));
        self.step_until("the nodes to take part", within, |cluster| {
            cluster.places.iter().all(|place| place.node().is_some_and(|node| node.running().is_some()))
        })
    }

    /// Runs `software` once, on a host of its own.
    pub fn client(&mut self, name: &str, software: impl Future<Output = turmoil::Result> + 'static) {
        self.simulation.client(name, software);
    }

    /// Adds a host without a disk that can be killed and started: a worker. `software` is called at each start with
    /// options for a client that repeat with the seed and differ between starts.
    ///
    /// An error that it ends with ends the simulation. When it has ended well its host stays, and a fault may start it
    /// again: a program must bear to be started when its work is done. What it shares with the caller (an `Rc<Cell<…>>`
    /// will do) outlives its deaths, unlike the memory of a real process. Its calls seldom fail, since the options'
    /// deadline of a minute is longer than most faults: give it a shorter one to see how it bears errors, and its job a
    /// short lease to see it removed.
    pub fn worker<F, Fut>(&mut self, name: &str, software: F)
    where
        F: Fn(Options) -> Fut + 'static,
        Fut: Future<Output = turmoil::Result> + 'static,
    {
        self.up.insert(name.to_owned(), true);
        self.workers.push(name.to_owned());
        let seed = mix(self.seed, self.up.len() as u64);
        let starts = std::cell::Cell::new(0);
        let (failpoints, host) = (self.failpoints().clone(), name.to_owned());
        self.note(name, What::Up);
        self.simulation.host(name, move || {
            starts.set(starts.get() + 1);
            let life = software(client_options(mix(seed, starts.get())));
            let (failpoints, host) = (failpoints.clone(), host.clone());
            async move {
                failpoints.enter(&host);
                life.await
            }
        });
    }

    /// Whether a host has power and its software was started.
    #[must_use]
    pub fn is_up(&self, host: &str) -> bool {
        self.up.get(host).copied().unwrap_or(false)
    }

    /// Kills the process on a host; false if it was not up.
    pub fn kill(&mut self, host: &str) -> bool {
        let was_up = self.up.insert(host.to_owned(), false).unwrap_or(false);
        if was_up {
            self.simulation.kill(host);
            self.note(host, What::Down { why: "killed".to_owned() });
        }
        was_up
    }

    /// Starts a host that is not up; false if it was.
    pub fn start(&mut self, host: &str) -> bool {
        if self.dark.contains(host) {
            self.restore_power(&[host.to_owned()]);
            return true;
        }
        let was_up = self.up.insert(host.to_owned(), true).unwrap_or(true);
        if !was_up {
            self.simulation.start(host);
            self.note(host, What::Up);
        }
        !was_up
    }

    /// Takes the power of those hosts that are up, at the same instant. Returns which they were and what each lost.
    pub fn lose_power(&mut self, hosts: &[String]) -> Vec<(String, Lost)> {
        let hit: Vec<&str> = hosts.iter().map(String::as_str).filter(|host| self.is_up(host)).collect();
        for host in &hit {
            self.up.insert((*host).to_owned(), false);
            self.dark.insert((*host).to_owned());
        }
        let lost = self.simulation.lose_power(&hit);
        hit.iter().for_each(|host| self.note(host, What::Down { why: "power lost".to_owned() }));
        hit.into_iter().map(str::to_owned).zip(lost).collect()
    }

    /// Gives the power back to those of the hosts that are not up. Links that were cut stay cut.
    pub fn restore_power(&mut self, hosts: &[String]) {
        let back: Vec<&str> = hosts.iter().map(String::as_str).filter(|host| !self.is_up(host)).collect();
        for host in &back {
            self.up.insert((*host).to_owned(), true);
            self.dark.remove(*host);
        }
        self.simulation.restore_power(&back);
        back.iter().for_each(|host| self.note(host, What::Up));
        let cuts: Vec<_> = self.cuts.iter().cloned().collect();
        self.simulation.inside(|sim| cuts.iter().for_each(|(a, b)| sim.partition(a.as_str(), b.as_str())));
    }

    fn place(&self, host: &str) -> &Place {
        self.places.iter().find(|place| place.name == host).expect("a node of this cluster")
    }

    /// What has happened to a node's disk.
    ///
    /// # Panics
    /// If there is no such node.
    #[must_use]
    pub fn disk(&self, node: &str) -> Counters {
        self.place(node).disk.counters()
    }

    /// What has happened to the nodes' disks.
    #[must_use]
    pub fn disks(&self) -> Vec<Counters> {
        self.places.iter().map(|place| place.disk.counters()).collect()
    }
}

/// Options of a client in a host of the simulation.
#[must_use]
pub fn client_options(seed: u64) -> Options {
    Options {
        connector: Arc::new(SimConnector),
        seed,
        // Named, not taken from the defaults: those draw a seed from the operating system.
        deadline: Duration::from_secs(60),
        hedge_after: Duration::from_millis(100),
        retry_pause: Duration::from_millis(40),
        stall_after: Duration::from_millis([500, 500, 1000, 2000][(seed % 4) as usize]),
    }
}

/// Calls the first node until it has formed the cluster.
async fn init(request: wire::InitRequest) -> turmoil::Result {
    let connector: Arc<dyn Connector> = Arc::new(SimConnector);
    let first = request.addresses.first().ok_or("a cluster without nodes")?;
    let channel = channel(&connector, first, ChannelSettings::default())?;
    loop {
        match AdminClient::new(channel.clone()).init(request.clone()).await {
            Ok(_) => return Ok(()),
            Err(status) => {
                let error = petuum_net::status::from_status(&status);
                if !error.is_retryable() {
                    return Err(error.into());
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
