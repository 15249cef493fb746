//! Takes a machine's power in the midst of a step, when its software reaches a failpoint.
//!
//! A host of a simulation cannot die between two instructions, so it is made to be dead for everybody else: from the
//! failpoint on its disk takes no operation and its network carries nothing, either way. Its software runs on to the end
//! of the step, without any effect; then the simulation drops it and lets its disk lose what was not durable.

use crate::disk::{Disk, Lost};
use crate::history::{History, What};
use petuum_chaos::{Buggify, Failpoint, Handler, Installed, install};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use tokio::runtime::{Handle, Id};

/// A host that has lost its power at a failpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struck {
    /// The host.
    pub host: String,
    /// Where.
    pub point: Failpoint,
    /// What its disk lost.
    pub lost: Lost,
}

/// The failpoints of one simulation. Clones are handles to the same.
#[derive(Clone)]
pub struct Failpoints {
    board: Rc<Board>,
    _installed: Rc<Installed>,
}

struct Board {
    state: RefCell<State>,
    history: History,
}

#[derive(Default)]
struct State {
    /// Which host a runtime is of. Each start of a host has a runtime of its own.
    runtimes: Vec<(Id, String)>,
    disks: BTreeMap<String, Disk>,
    hosts: Vec<String>,
    armed: Vec<Armed>,
    fired: Vec<(String, Failpoint)>,
    reached: BTreeMap<Failpoint, u64>,
    /// Places that are clumsy in this run, and how often each was.
    clumsy: BTreeMap<Buggify, u64>,
    random: Option<fastrand::Rng>,
}

struct Armed {
    point: Failpoint,
    /// Any host, if none is named.
    host: Option<String>,
    /// How often it is passed before.
    passes: u32,
}

impl Failpoints {
    pub(crate) fn new(history: History) -> Self {
        let board = Rc::new(Board { state: RefCell::default(), history });
        let installed = Rc::new(install(board.clone()));
        Self { board, _installed: installed }
    }

    pub(crate) fn add_host(&self, host: &str, disk: Option<&Disk>) {
        let mut state = self.board.state.borrow_mut();
        state.hosts.push(host.to_owned());
        state.disks.extend(disk.map(|disk| (host.to_owned(), disk.clone())));
    }

    /// The calling task's runtime is this host's from now on. To be called first by a host's software.
    ///
    /// # Panics
    /// Outside a runtime.
    pub fn enter(&self, host: &str) {
        let mut state = self.board.state.borrow_mut();
        state.runtimes.retain(|(_, of)| of != host);
        state.runtimes.push((Handle::current().id(), host.to_owned()));
    }

    /// The next host (or this one) that reaches `point` for the time after `passes` others loses its power there.
    pub fn arm(&self, point: Failpoint, host: Option<&str>, passes: u32) {
        self.board.state.borrow_mut().armed.push(Armed { point, host: host.map(str::to_owned), passes });
    }

    /// Forgets what is armed; how many were.
    pub fn disarm(&self) -> usize {
        std::mem::take(&mut self.board.state.borrow_mut().armed).len()
    }

    /// Hosts that have lost their power since the last call, and where.
    pub(crate) fn take_fired(&self) -> Vec<(String, Failpoint)> {
        std::mem::take(&mut self.board.state.borrow_mut().fired)
    }

    /// Makes places of the product clumsy from now on: each in one run of two, and there one time in sixteen; more often
    /// where a run seldom comes by.
    pub fn buggify(&self, seed: u64) {
        let mut random = fastrand::Rng::with_seed(seed);
        let places: Vec<Buggify> = Buggify::ALL.iter().copied().filter(|_| random.bool()).collect();
        self.buggify_at(random.u64(..), &places);
    }

    /// Makes these places of the product clumsy from now on, as often as [`Failpoints::buggify`] does.
    pub fn buggify_at(&self, seed: u64, places: &[Buggify]) {
        let mut state = self.board.state.borrow_mut();
        state.clumsy = places.iter().map(|place| (*place, 0)).collect();
        state.random = Some(fastrand::Rng::with_seed(seed));
    }

    /// Ends what [`Failpoints::buggify`] or [`Failpoints::buggify_at`] began.
    pub fn be_careful(&self) {
        self.board.state.borrow_mut().random = None;
    }

    /// How often each place was clumsy; places that never could be are not named.
    #[must_use]
    pub fn clumsy(&self) -> BTreeMap<Buggify, u64> {
        self.board.state.borrow().clumsy.clone()
    }

    /// How often each point was reached.
    #[must_use]
    pub fn reached(&self) -> BTreeMap<Failpoint, u64> {
        self.board.state.borrow().reached.clone()
    }
}

impl Failpoints {
    /// The host whose task is running; none if that cannot be said just now.
    pub(crate) fn host(&self) -> Option<String> {
        self.board.state.try_borrow().ok()?.current()
    }

    /// What has happened in their simulation.
    pub(crate) fn history(&self) -> History {
        self.board.history.clone()
    }
}

impl Handler for Board {
    fn reached(&self, point: Failpoint) {
        let mut state = self.state.borrow_mut();
        *state.reached.entry(point).or_default() += 1;
        let Some(host) = state.current() else { return };
        if is_drawn(point)
            && let Some(now) = turmoil::sim_elapsed()
        {
            self.history.note(now, &host, What::Reached { point: point.name() });
        }
        if !state.strikes(point, &host) {
            return;
        }
        tracing::info!(%host, point = point.name(), "the power goes at a failpoint");
        if let Some(disk) = state.disks.get(&host) {
            disk.power_off();
        }
        for other in state.hosts.iter().filter(|other| **other != host) {
            turmoil::partition(host.as_str(), other.as_str());
        }
        state.fired.push((host, point));
    }

    fn clumsy(&self, place: Buggify) -> bool {
        let mut state = self.state.borrow_mut();
        let State { clumsy, random: Some(random), .. } = &mut *state else { return false };
        let Some(count) = clumsy.get_mut(&place) else { return false };
        let now = random.u8(..one_in(place)) == 0;
        *count += u64::from(now);
        now
    }
}

impl State {
    fn current(&self) -> Option<String> {
        let runtime = Handle::try_current().ok()?.id();
        let (_, host) = self.runtimes.iter().find(|(id, _)| *id == runtime)?;
        let alive = self.fired.iter().all(|(dead, _)| dead != host);
        alive.then(|| host.clone())
    }

    /// Whether an armed failpoint hits here; it is spent then.
    fn strikes(&mut self, point: Failpoint, host: &str) -> bool {
        let fits = |armed: &Armed| armed.point == point && armed.host.as_deref().is_none_or(|named| named == host);
        let Some(at) = self.armed.iter().position(fits) else { return false };
        if self.armed[at].passes > 0 {
            self.armed[at].passes -= 1;
            return false;
        }
        self.armed.remove(at);
        true
    }
}

/// One of how many passes of a place is clumsy.
const fn one_in(place: Buggify) -> u8 {
    match place {
        Buggify::ExpiryLate => 1,
        // Two readers of one row are answered by two replicas only if both go astray, or one does.
        Buggify::ReadElsewhere => 3,
        Buggify::ErrandTwice | Buggify::ErrandLate | Buggify::ErrandStray | Buggify::PieceLate | Buggify::PieceSlow => {
            5
        }
        _ => 16,
    }
}

/// Points that tell a reader of a drawing how clocks go on.
const fn is_drawn(point: Failpoint) -> bool {
    matches!(point, Failpoint::StageAfterApply | Failpoint::TickAfterApply | Failpoint::MessageAfterAnswer)
}
