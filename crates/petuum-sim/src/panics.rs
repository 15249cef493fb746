//! Says of a panic inside a simulation in which one, when and where it happened, and what had happened last, before the
//! panic's own message: what repeats it is the seed, and one panic is followed by others, of destructors in a host that is
//! being dropped. Nothing here may panic: it is called by the hook of panics.

use std::cell::{Cell, RefCell};
use std::panic;
use std::path::PathBuf;
use std::sync::Once;

use crate::clock;
use crate::failpoints::Failpoints;
use crate::history::History;

thread_local! {
    /// The simulation that this thread is inside of.
    static INSIDE: RefCell<Option<(u64, Failpoints)>> = const { RefCell::new(None) };
    /// Where the run is drawn if it panics.
    static DRAWING: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    /// Whether a panic of this thread has been told.
    static TOLD: Cell<bool> = const { Cell::new(false) };
}

/// Events that are shown of what had happened last.
const EVENTS_SHOWN: usize = 25;

/// If a host of a simulation of this thread panics, its history is drawn there, in one page.
pub fn draw_if_it_panics(file: PathBuf) {
    DRAWING.replace(Some(file));
}

static HOOK: Once = Once::new();

/// While it lives, the calling thread is inside a simulation.
pub(crate) struct Inside {
    before: Option<(u64, Failpoints)>,
}

impl Inside {
    pub(crate) fn enter(seed: u64, failpoints: &Failpoints) -> Self {
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |panicked| {
                tell();
                usual(panicked);
            }));
        });
        Self { before: INSIDE.replace(Some((seed, failpoints.clone()))) }
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.replace(self.before.take());
    }
}

#[expect(clippy::print_stderr, reason = "where the message of a panic goes")]
fn tell() {
    if TOLD.try_with(|told| told.replace(true)).unwrap_or(true) {
        return;
    }
    let Some((place, history)) = place() else { return TOLD.set(false) };
    eprintln!("\n{place}, after");
    history.try_tail(EVENTS_SHOWN).iter().for_each(|line| eprintln!("{line}"));
    let file = DRAWING.try_with(|file| file.try_borrow().ok()?.clone()).ok().flatten();
    if let Some((file, html)) = file.and_then(|file| Some((file, history.try_html(&place)?))) {
        match std::fs::write(&file, html) {
            Ok(()) => eprintln!("drawn in {}", file.display()),
            Err(error) => eprintln!("it cannot be drawn in {}: {error}", file.display()),
        }
    }
}

/// Where the calling thread is, and what has happened there.
fn place() -> Option<(String, History)> {
    INSIDE
        .try_with(|inside| {
            let inside = inside.try_borrow().ok()?;
            let (seed, failpoints) = inside.as_ref()?;
            let at = clock::elapsed().unwrap_or_default();
            let host = failpoints.host().unwrap_or_else(|| "no host".to_owned());
            Some((format!("in the simulation of seed {seed}, at {at:?}, on {host}"), failpoints.history()))
        })
        .ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Simulation;
    use std::rc::Rc;
    use std::time::Duration;

    #[test]
    fn a_panic_is_told_with_seed_time_and_host() {
        assert!(place().is_none());
        let mut simulation = Simulation::new(&crate::Settings::new(7));
        let (told, failpoints) = (Rc::new(RefCell::new(None)), simulation.failpoints().clone());
        let to = Rc::clone(&told);
        simulation.client("worker-1", async move {
            failpoints.enter("worker-1");
            tokio::time::sleep(Duration::from_millis(3)).await;
            *to.borrow_mut() = place().map(|(place, _)| place);
            Ok(())
        });
        simulation.run().unwrap();
        let told = told.borrow_mut().take().expect("inside");
        assert!(told.starts_with("in the simulation of seed 7, at ") && told.ends_with("on worker-1"), "{told}");
        assert!(place().is_none(), "over");
    }
    #[test]
    fn a_run_that_panics_is_drawn() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.html");
        draw_if_it_panics(file.clone());
        let simulation = panic::AssertUnwindSafe(|| {
            let mut simulation = Simulation::new(&crate::Settings::new(9));
            simulation.history().note(Duration::ZERO, "node-1", crate::history::What::Up);
            simulation.inside(|_| panic!("a defect"))
        });
        assert!(panic::catch_unwind(simulation).is_err());
        let html = std::fs::read_to_string(file).unwrap();
        assert!(html.contains("node-1") && html.contains("seed 9"));
    }
}
