//! What happened in a run, host by host, for people: kept of every run, shown of those that failed.
//!
//! Each event has a virtual time and a host. [`History::html`] draws them in one file that needs nothing else.

mod html;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Events kept; beyond it only the rare kinds are.
const EVENTS_MAX: usize = 200_000;

/// What an event is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// The host's software runs from here on.
    Up,
    /// It runs no more.
    Down {
        /// Why.
        why: String,
    },
    /// A fault begins.
    Fault {
        /// Which.
        name: String,
    },
    /// A fault is over.
    Healed {
        /// Which.
        name: String,
    },
    /// The host's replica leads a group.
    Leads {
        /// The group.
        group: u32,
        /// In this term.
        term: u64,
    },
    /// A point in the software was reached: a stage or tick applied, an answer heard.
    Reached {
        /// The failpoint's name.
        point: &'static str,
    },
    /// A worker's clocks.
    Clocks {
        /// Ended by its program.
        ended: u64,
        /// Known to be acknowledged.
        acked: u64,
    },
    /// A worker's calls ended without an answer: what they did is not known.
    Unknown {
        /// Clocks ended and not acknowledged.
        clocks: u64,
    },
    /// What was found wrong.
    Broken {
        /// The message.
        message: String,
    },
}

impl What {
    /// Few in a run, so that none is ever left out.
    const fn is_rare(&self) -> bool {
        !matches!(self, Self::Reached { .. } | Self::Clocks { .. })
    }
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Virtual time.
    pub at: Duration,
    /// Where.
    pub host: String,
    /// What.
    pub what: What,
}

/// The events of one run, in order. Clones are handles to the same.
#[derive(Clone, Debug, Default)]
pub struct History {
    events: Rc<RefCell<Vec<Event>>>,
}

impl History {
    /// Nothing has happened.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds what happened just now.
    pub fn note(&self, at: Duration, host: &str, what: What) {
        let mut events = self.events.borrow_mut();
        if events.len() < EVENTS_MAX || what.is_rare() {
            events.push(Event { at, host: host.to_owned(), what });
        }
    }

    /// How many events are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.borrow().len()
    }

    /// Whether nothing has happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.borrow().is_empty()
    }

    /// The last events of the rare kinds, as lines for a report of a failure.
    #[must_use]
    pub fn tail(&self, count: usize) -> Vec<String> {
        lines(&self.events.borrow(), count)
    }

    /// The same in the midst of anything: nothing if an event is just being noted.
    pub(crate) fn try_tail(&self, count: usize) -> Vec<String> {
        self.events.try_borrow().map(|events| lines(&events, count)).unwrap_or_default()
    }

    /// The drawing in the midst of anything: none if an event is just being noted.
    pub(crate) fn try_html(&self, title: &str) -> Option<String> {
        self.events.try_borrow().ok()?;
        Some(self.html(title))
    }

    /// Events by host, hosts in order of their names.
    fn by_host(&self) -> BTreeMap<String, Vec<Event>> {
        let mut hosts = BTreeMap::<String, Vec<Event>>::new();
        for event in self.events.borrow().iter() {
            hosts.entry(event.host.clone()).or_default().push(event.clone());
        }
        hosts
    }
}

/// The last events of the rare kinds.
fn lines(events: &[Event], count: usize) -> Vec<String> {
    let rare: Vec<&Event> = events.iter().filter(|event| event.what.is_rare()).collect();
    let shown = &rare[rare.len().saturating_sub(count)..];
    shown.iter().map(|event| format!("{:>10.3?} {:<10} {:?}", event.at, event.host, event.what)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_events_make_room_for_rare_ones() {
        let history = History::new();
        for _ in 0..=EVENTS_MAX {
            history.note(Duration::ZERO, "node-1", What::Reached { point: "tick.after-apply" });
        }
        assert_eq!(history.len(), EVENTS_MAX);
        history.note(Duration::from_secs(1), "node-1", What::Broken { message: "lost".to_owned() });
        assert_eq!(history.len(), EVENTS_MAX + 1);
        let tail = history.tail(5);
        assert!(tail.len() == 1 && tail[0].contains("lost"), "{tail:?}");
    }

    #[test]
    fn the_drawing_holds_every_host_and_cannot_be_broken_out_of() {
        let history = History::new();
        history.note(Duration::from_millis(5), "node-1", What::Leads { group: 1, term: 3 });
        let why = "</script><b>\"\\ & \u{2028}".to_owned();
        history.note(Duration::from_millis(9), "worker-0", What::Down { why });
        let html = history.html("seed 7");
        assert!(html.contains("node-1") && html.contains("worker-0") && html.contains("seed 7"));
        assert_eq!(html.matches("</script>").count(), 1, "text of an event ends the script");
        assert!(!html.contains("http:") && !html.contains("https:"), "one file that needs nothing else");
    }
}
