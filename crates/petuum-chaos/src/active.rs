//! What the points do while a simulation runs on this thread.

use crate::{Buggify, Failpoint, Mutant};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What a simulation does at the points of its thread.
pub trait Handler {
    /// A failpoint is reached. Called by the code that reached it, in the midst of it: it must not call that code.
    fn reached(&self, point: Failpoint);

    /// Whether a place is to be clumsy this time.
    fn clumsy(&self, place: Buggify) -> bool;
}

thread_local! {
    static HANDLER: RefCell<Option<Rc<dyn Handler>>> = const { RefCell::new(None) };
    static MUTANT: Cell<Option<Mutant>> = const { Cell::new(None) };
}

/// Failpoints of this thread tell a handler as long as this lives.
#[must_use]
pub struct Installed(());

/// A mutant is planted on this thread as long as this lives.
#[must_use]
pub struct Planted(());

/// Has this thread's failpoints tell `handler`.
///
/// # Panics
/// If there is one already.
pub fn install(handler: Rc<dyn Handler>) -> Installed {
    let before = HANDLER.with(|place| place.borrow_mut().replace(handler));
    assert!(before.is_none(), "one simulation per thread at a time");
    Installed(())
}

/// Plants a defect on this thread.
///
/// # Panics
/// If there is one already: two would hide each other.
pub fn plant(mutant: Mutant) -> Planted {
    let before = MUTANT.replace(Some(mutant));
    assert!(before.is_none(), "one mutant per thread at a time");
    Planted(())
}

impl Drop for Installed {
    fn drop(&mut self) {
        HANDLER.with(|place| place.borrow_mut().take());
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        MUTANT.set(None);
    }
}

fn handler() -> Option<Rc<dyn Handler>> {
    // A thread that is ending has none any more.
    HANDLER.try_with(|place| place.borrow().clone()).ok().flatten()
}

/// Says that a failpoint was reached.
pub fn reached(point: Failpoint) {
    if let Some(handler) = handler() {
        handler.reached(point);
    }
}

/// Whether to be clumsy here, this time.
#[must_use]
pub fn clumsy(place: Buggify) -> bool {
    handler().is_some_and(|handler| handler.clumsy(place))
}

/// Whether this defect is planted here.
#[must_use]
pub fn mutated(mutant: Mutant) -> bool {
    MUTANT.try_with(Cell::get).is_ok_and(|planted| planted == Some(mutant))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Count(Cell<usize>);

    impl Handler for Count {
        fn reached(&self, _: Failpoint) {
            self.0.set(self.0.get() + 1);
        }

        fn clumsy(&self, _: Buggify) -> bool {
            true
        }
    }

    #[test]
    fn a_handler_hears_only_while_it_is_installed() {
        let count = Rc::new(Count(Cell::new(0)));
        reached(Failpoint::ALL[0]);
        let installed = install(count.clone());
        reached(Failpoint::ALL[0]);
        drop(installed);
        reached(Failpoint::ALL[0]);
        assert_eq!(count.0.get(), 1);
        assert!(!clumsy(Buggify::ALL[0]));
    }

    #[test]
    fn a_mutant_lives_on_its_thread_while_it_is_planted() {
        let [mutant, other] = [Mutant::ALL[0], Mutant::ALL[1]];
        let planted = plant(mutant);
        assert!(mutated(mutant) && !mutated(other));
        let elsewhere = std::thread::scope(|scope| scope.spawn(|| mutated(mutant)).join());
        assert!(!elsewhere.unwrap());
        drop(planted);
        assert!(!mutated(mutant));
    }
}
