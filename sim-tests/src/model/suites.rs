//! Which models are checked: by every change, and by whoever has more time.

use super::bounds::{Bounds, Failover, Predecessor};

/// The models that CI checks, each whole.
///
/// At s = 0 one model has everything at once: a takeover, an eviction, a join (the evicted worker comes back), a repeat and
/// a loss. At s = 1 there are more orders than minutes: there every two of them meet in one model. The rest vary what
/// those leave out: answers that take time, both workers' first join, messages that come too early, a living predecessor,
/// another leader of the control group, clocks that lie in one shard.
#[must_use]
pub fn ci() -> Vec<Bounds> {
    let at_once = |staleness| Bounds { answers_travel: false, ..Bounds::calm(staleness) };
    let takeover = |bounds| Bounds { takeovers: 1, ..bounds };
    let removal = |bounds| Bounds { evictions: 1, rejoins: 1, ..bounds };
    let repeat = |bounds| Bounds { repeats: 1, ..bounds };
    let loss = |bounds| Bounds { losses: 1, ..bounds };
    let one_shard = |bounds| Bounds { one_shard_clocks: true, ..bounds };
    vec![
        loss(repeat(removal(takeover(at_once(0))))),
        removal(takeover(at_once(1))),
        repeat(takeover(at_once(1))),
        loss(takeover(at_once(1))),
        repeat(removal(at_once(1))),
        loss(removal(at_once(1))),
        loss(repeat(at_once(1))),
        Bounds { joined: false, ..Bounds::calm(1) },
        takeover(Bounds::calm(1)),
        loss(takeover(Bounds::calm(0))),
        repeat(takeover(Bounds::calm(0))),
        Bounds { joined: false, ..removal(takeover(at_once(0))) },
        Bounds { early: 1, predecessor: Predecessor::Rival, ..removal(takeover(at_once(0))) },
        Bounds { failover: Failover::Restart, ..loss(takeover(at_once(0))) },
        Bounds { failover: Failover::Overlap, ..removal(at_once(0)) },
        Bounds { failover: Failover::Overlap, ..repeat(takeover(at_once(0))) },
        loss(repeat(takeover(one_shard(at_once(1))))),
        loss(repeat(removal(one_shard(at_once(1))))),
    ]
}
