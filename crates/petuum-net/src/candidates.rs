//! Which of several replicas to ask next: each once, the one believed to lead first, the one that is named next.

use petuum_types::NodeId;
use std::collections::VecDeque;

/// Whom to ask in one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    next: VecDeque<NodeId>,
    named: Option<NodeId>,
}

impl Candidates {
    /// Every replica once, the one believed to lead first, the others in their order.
    pub fn new(replicas: impl IntoIterator<Item = NodeId>, believed: Option<NodeId>) -> Self {
        let mut next: Vec<NodeId> = replicas.into_iter().collect();
        next.sort_by_key(|node| Some(*node) != believed);
        Self { next: next.into(), named: None }
    }

    /// The next to ask, who is not asked again in this round.
    pub fn take(&mut self) -> Option<NodeId> {
        self.next.pop_front()
    }

    /// Whether all have been asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next.is_empty()
    }

    /// Somebody has named the leader: it is the next to be asked, unless it has been asked in this round.
    pub fn name(&mut self, leader: NodeId) {
        self.named = Some(leader);
        if let Some(at) = self.next.iter().position(|node| *node == leader) {
            self.next.remove(at);
            self.next.push_front(leader);
        }
    }

    /// Who was named last: whom to believe in the next round.
    #[must_use]
    pub const fn named(&self) -> Option<NodeId> {
        self.named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_believed_leader_is_asked_first_and_the_named_one_next() {
        let mut candidates = Candidates::new([NodeId(1), NodeId(2), NodeId(3)], Some(NodeId(2)));
        assert_eq!(candidates.take(), Some(NodeId(2)));
        candidates.name(NodeId(3));
        assert_eq!(candidates.clone().take(), Some(NodeId(3)));
        // Asked already: not again in this round, but first in the next.
        candidates.name(NodeId(2));
        assert_eq!((candidates.take(), candidates.take()), (Some(NodeId(3)), Some(NodeId(1))));
        assert!(candidates.is_empty() && candidates.named() == Some(NodeId(2)));
    }
}
