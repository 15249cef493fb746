//! Says of a panic inside a simulation in which one, when and where it happened, before the panic's own message: what
//! repeats it is the seed, and one panic is followed by others, of destructors in a host that is being dropped.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

use crate::clock;
use crate::failpoints::Failpoints;

thread_local! {
    /// The simulation that this thread is inside of.
    static INSIDE: RefCell<Option<(u64, Failpoints)>> = const { RefCell::new(None) };
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
    if let Some(place) = place() {
        eprintln!("\n{place}:");
    }
}

/// Where the calling thread is. Panics at no time: it is asked by the hook of panics.
fn place() -> Option<String> {
    INSIDE
        .try_with(|inside| {
            let inside = inside.try_borrow().ok()?;
            let (seed, failpoints) = inside.as_ref()?;
            let at = clock::elapsed().unwrap_or_default();
            let host = failpoints.host().unwrap_or_else(|| "no host".to_owned());
            Some(format!("in the simulation of seed {seed}, at {at:?}, on {host}"))
        })
        .ok()?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Simulation;
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    #[test]
    fn a_panic_is_told_with_seed_time_and_host() {
        assert_eq!(place(), None);
        let mut simulation = Simulation::new(&crate::Settings::new(7));
        let (told, failpoints) = (Rc::new(RefCell::new(None)), simulation.failpoints().clone());
        let to = Rc::clone(&told);
        simulation.client("worker-1", async move {
            failpoints.enter("worker-1");
            tokio::time::sleep(Duration::from_millis(3)).await;
            *to.borrow_mut() = place();
            Ok(())
        });
        simulation.run().unwrap();
        let told = told.borrow_mut().take().expect("inside");
        assert!(told.starts_with("in the simulation of seed 7, at ") && told.ends_with("on worker-1"), "{told}");
        assert_eq!(place(), None, "over");
    }
}
