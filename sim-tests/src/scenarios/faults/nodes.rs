//! Nodes that die, with and without their power, and nodes that are asked to go.

use petuum_chaos::Failpoint;
use petuum_sim::Error;

use super::{Faults, Heal, Kind};
use crate::scenarios::stage::Stage;

/// How often at most a failpoint is passed before the power goes there.
const PASSES_MAX: u32 = 20;

impl Faults {
    pub(super) fn kill_leader(&mut self, stage: &mut Stage) -> Result<(), Error> {
        let group = self.any_group(stage);
        let leader = self.wait_for(stage, "a leader to kill", |stage| stage.cluster.leader(group))?;
        if stage.cluster.kill(&leader) {
            self.count(Kind::KillLeader);
        }
        self.heal_in(200..3000, stage, Heal::Start(leader));
        Ok(())
    }

    pub(super) fn stop_node(&mut self, stage: &Stage) {
        let node = self.any_node(stage);
        if stage.cluster.is_up(&node) && !stage.cluster.has_ended(&node) {
            stage.cluster.ask_to_stop(&node);
            self.heal_in(1000..5000, stage, Heal::Restart(Kind::StopNode, node));
        } else {
            self.again(Kind::StopNode);
        }
    }

    /// Starts a node again that was to end by itself. If it has not, whatever else struck it, the fault comes again.
    pub(super) fn restart(&mut self, stage: &mut Stage, kind: Kind, host: &str) {
        if !stage.cluster.is_up(host) {
            // Something else has killed it and will start it.
            self.again(kind);
            return;
        }
        if stage.cluster.has_ended(host) {
            self.count(kind);
        } else {
            self.again(kind);
        }
        stage.cluster.kill(host);
        stage.cluster.start(host);
    }

    pub(super) fn lose_power_everywhere(&mut self, stage: &mut Stage) {
        let nodes = stage.cluster.nodes();
        self.lose_power(stage, &nodes, Kind::PowerLoss);
    }

    pub(super) fn lose_power_of_some(&mut self, stage: &mut Stage) {
        let some: Vec<String> = stage.cluster.nodes().into_iter().filter(|_| self.random.u8(..3) == 0).collect();
        let hosts = if some.is_empty() { vec![self.any_node(stage)] } else { some };
        self.lose_power(stage, &hosts, Kind::PowerLossOfSome);
    }

    fn lose_power(&mut self, stage: &mut Stage, hosts: &[String], kind: Kind) {
        let lost = stage.cluster.lose_power(hosts);
        tracing::info!(?lost, "power lost");
        if lost.iter().any(|(_, lost)| lost.bytes > 0) {
            self.count(kind);
        } else {
            // Nothing was being written just then.
            self.again(kind);
        }
        let hosts = lost.into_iter().map(|(host, _)| host).collect();
        self.heal_in(100..3000, stage, Heal::Power(hosts));
    }

    /// Arms a failpoint; whoever reaches it is dead.
    pub(super) fn arm(&mut self, stage: &Stage) {
        let point = Failpoint::ALL[self.random.usize(..Failpoint::ALL.len())];
        stage.cluster.failpoints().arm(point, None, self.random.u32(..PASSES_MAX));
        self.heal_in(1000..4000, stage, Heal::Disarm);
    }

    pub(super) fn disarm(&mut self, stage: &Stage) {
        if stage.cluster.failpoints().disarm() > 0 {
            // Nobody came by; another one, then.
            self.again(Kind::Failpoint);
        }
    }

    /// Brings those back that lost their power at a failpoint.
    pub(super) fn restore_struck(&mut self, stage: &mut Stage) {
        for struck in stage.cluster.take_struck() {
            self.count(Kind::Failpoint);
            *stage.struck.entry(struck.point).or_default() += 1;
            self.heal_in(100..3000, stage, Heal::Power(vec![struck.host]));
        }
    }
}
