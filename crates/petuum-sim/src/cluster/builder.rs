//! What a simulated cluster is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use petuum_server::NodeSettings;
use petuum_storage::StoreOptions;

use super::node::{self, Machine, Place};
use super::{PORT, SimCluster};
use crate::history::What;
use crate::simulation::mix;
use crate::{Settings, Simulation};

/// A cluster to be built; [`SimCluster::builder`] begins.
#[derive(Clone, Debug)]
pub struct ClusterBuilder {
    seed: u64,
    nodes: u32,
    shards: u32,
    replication: u32,
    settings: NodeSettings,
    settings_of: BTreeMap<u32, NodeSettings>,
    network: Settings,
    machine: Machine,
}

impl ClusterBuilder {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            seed,
            nodes: 3,
            shards: 2,
            replication: 3,
            settings: NodeSettings::default(),
            settings_of: BTreeMap::new(),
            network: Settings::new(seed),
            machine: Machine {
                sync_latency: (Duration::from_micros(500), Duration::from_millis(2)),
                write_buffer_bytes: StoreOptions::default().write_buffer_bytes,
                jobs_begin_one_in: None,
            },
        }
    }

    /// How many nodes; 3 by default.
    #[must_use]
    pub fn nodes(mut self, nodes: u32) -> Self {
        self.nodes = nodes;
        self
    }

    /// How many shards; 2 by default.
    #[must_use]
    pub fn shards(mut self, shards: u32) -> Self {
        self.shards = shards;
        self
    }

    /// Replicas of each shard; 3 by default.
    #[must_use]
    pub fn replication(mut self, replication: u32) -> Self {
        self.replication = replication;
        self
    }

    /// Settings of every node.
    #[must_use]
    pub fn settings(mut self, settings: NodeSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Settings of one node, counted from 1, that differ from those of the others: one whose clock runs fast or slow.
    #[must_use]
    pub fn settings_of(mut self, node: u32, settings: NodeSettings) -> Self {
        self.settings_of.insert(node, settings);
        self
    }

    /// Virtual time after which clients that have not ended are an error; ten minutes by default.
    #[must_use]
    pub fn duration(mut self, duration: Duration) -> Self {
        self.network.duration = duration;
        self
    }

    /// Least and greatest latency of a message.
    #[must_use]
    pub fn latency(mut self, least: Duration, greatest: Duration) -> Self {
        self.network.latency = (least, greatest);
        self
    }

    /// Least and greatest time that making the log durable takes.
    #[must_use]
    pub fn sync_latency(mut self, least: Duration, greatest: Duration) -> Self {
        self.machine.sync_latency = (least, greatest);
        self
    }

    /// Memory that a node's log, and likewise its snapshots, may fill before it is written to a table file and a new
    /// write-ahead log begins; at least 64 KiB.
    #[must_use]
    pub fn write_buffer_bytes(mut self, bytes: usize) -> Self {
        self.machine.write_buffer_bytes = bytes;
        self
    }

    /// RocksDB's flushes and compactions stay pending, and begin in one of so many steps; at once by default. See
    /// [`Disk::hold_background_jobs`](crate::disk::Disk::hold_background_jobs).
    #[must_use]
    pub fn jobs_begin_one_in(mut self, steps: u32) -> Self {
        self.machine.jobs_begin_one_in = Some(steps);
        self
    }

    /// The nodes, started and not yet formed into a cluster.
    #[must_use]
    pub fn build(self) -> SimCluster {
        let mut simulation = Simulation::new(&self.network);
        let failpoints = simulation.failpoints().clone();
        let mut up = BTreeMap::new();
        let mut places = Vec::new();
        for number in 1..=self.nodes {
            let name = format!("node-{number}");
            let seed = mix(self.seed, u64::from(number) << 32);
            let settings = self.settings_of.get(&number).unwrap_or(&self.settings).clone();
            let place = Place::new(name.clone(), PORT, seed, settings, self.machine.clone(), failpoints.clone());
            let place = Rc::new(place);
            let at = Rc::clone(&place);
            simulation.machine(&name, &place.disk, move || node::run(Rc::clone(&at)));
            simulation.history().note(Duration::ZERO, &name, What::Up);
            up.insert(name, true);
            places.push(place);
        }
        SimCluster {
            simulation,
            seed: self.seed,
            shards: self.shards,
            replication: self.replication,
            places,
            up,
            cuts: BTreeSet::new(),
            workers: Vec::new(),
            latency_max: self.network.latency.1,
            dark: BTreeSet::new(),
        }
    }
}
