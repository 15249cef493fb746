//! Where a shard's messages go: the replica that is believed to lead.

use petuum_types::NodeId;
use std::time::Duration;
use tokio::time::Instant;

/// Where a shard's messages go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) node: NodeId,
    /// Nothing is sent before.
    pub(crate) not_before: Option<Instant>,
    /// When it was chosen.
    since: Instant,
    /// Since when the node has only put messages off.
    refusing: Option<Instant>,
}

impl Route {
    pub(super) fn new(node: NodeId, not_before: Option<Instant>) -> Self {
        Self { node, not_before, since: Instant::now(), refusing: None }
    }

    /// Whether it was chosen less than `age` ago.
    pub(super) fn is_younger_than(&self, age: Duration) -> bool {
        self.since.elapsed() < age
    }

    /// The node has decided a message.
    pub(super) fn decided(&mut self) {
        self.refusing = None;
    }

    /// The node has put a message off. True once it has done nothing else for `patience`: it may have been deposed
    /// without noticing, and then what it waits for never comes to it. It would put a worker off for ever whose
    /// registration it has not heard of (G8). One that leads will be named by whoever is asked next.
    pub(super) fn put_off(&mut self, patience: Duration) -> bool {
        self.refusing.get_or_insert_with(Instant::now).elapsed() >= patience
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn g8_a_node_that_only_puts_off_is_left_and_one_that_decides_is_not() {
        let patience = Duration::from_secs(2);
        let mut route = Route::new(NodeId(1), None);
        assert!(!route.put_off(patience));
        advance(patience / 2).await;
        assert!(!route.put_off(patience));
        route.decided();
        advance(patience / 2).await;
        assert!(!route.put_off(patience));
        advance(patience).await;
        assert!(route.put_off(patience));
    }
}
