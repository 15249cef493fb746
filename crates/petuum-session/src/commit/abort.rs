//! P4: giving up a clock.
//!
//! A refused part makes its clock impossible. Later clocks that were queued behind it go with it: they were computed by a
//! worker that saw its own update of the refused clock, and none of them has ticked, because ticks go in clock order in
//! every shard. Each shard that was sent a part of such a clock gets a sequenced abort of it, behind those parts in the
//! same lane, so that parts still on their way are staged and forgotten in that order. Parts never sent just vanish.
//! Until every abort is acknowledged, `commit` takes nothing. Earlier clocks go on; if one of them is refused too while
//! the aborts are open, the same abort reaches further back.
//!
//! Answers to messages of a clock given up are void: one that comes late must not count for a new attempt.

use super::committer::Committer;
use super::event::Event;
use super::giving_up::Abort;
use petuum_types::Clock;
use petuum_types::outcome::Refusal;

impl Committer {
    /// A part of `clock` was refused.
    pub(super) fn give_up(&mut self, clock: Clock, refusal: Refusal) {
        let (upto, end) = self.abort.as_ref().map_or((self.next, self.next), |abort| (abort.from, abort.end));
        assert!(clock < upto, "answers to messages of clocks given up are void");
        let mut open = self.abort.as_ref().map_or(0, |abort| abort.open);
        for lane in self.lanes.values_mut() {
            assert!(lane.ticked <= clock, "a clock with a part unacknowledged has ticked nowhere");
            let before = lane.aborts.len();
            lane.aborts.extend(lane.staged.range(clock..upto).map(|(clock, _)| *clock));
            open += lane.aborts.len() - before;
            lane.give_up(clock);
        }
        self.pending.retain(|pending| pending.clock < clock);
        self.next = clock;
        self.abort = Some(Abort { from: clock, end, refusal, open });
    }

    /// A shard has forgotten what it held of a clock.
    pub(super) fn aborted(&mut self) -> Vec<Event> {
        let abort = self.abort.as_mut().expect("an abort is acknowledged only while its clock is being given up");
        abort.open -= 1;
        if abort.open > 0 {
            return Vec::new();
        }
        let Abort { from: clock, end, refusal, .. } = self.abort.take().expect("there was one above");
        vec![Event::Aborted { clock, end, refusal }]
    }
}
