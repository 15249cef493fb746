//! How a node ends: what ended it first, and tasks whose panic does.

use futures::FutureExt;
use petuum_types::{Error, ErrorKind};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::watch;

/// Why a node ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// As asked.
    Asked,
    /// It must not or cannot go on.
    Failed(Error),
}

/// Where a node's end is told. Clones are handles to the same; none keeps anything of the node alive.
#[derive(Clone)]
pub(crate) struct Ending(Arc<watch::Sender<Option<Stopped>>>);

impl Ending {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Ends the node. Of several reasons the first counts.
    pub(crate) fn end(&self, why: Stopped) {
        self.0.send_if_modified(|ended| {
            let first = ended.is_none();
            if first {
                *ended = Some(why);
            }
            first
        });
    }

    /// Why it has ended, if it has.
    pub(crate) fn reason(&self) -> Option<Stopped> {
        self.0.borrow().clone()
    }

    /// Waits for the end.
    pub(crate) async fn wait(&self) -> Stopped {
        let mut ended = self.0.subscribe();
        let why = ended.wait_for(Option::is_some).await.map(|why| why.clone());
        why.ok().flatten().unwrap_or(Stopped::Asked)
    }

    /// A task whose panic ends the node: a broken invariant is no reason to go on with a part missing.
    pub(crate) async fn watched(self, task: impl Future<Output = ()> + Send + 'static) {
        if AssertUnwindSafe(task).catch_unwind().await.is_err() {
            let message = "a task of the node panicked; its reason is in the log above";
            self.end(Stopped::Failed(Error::new(ErrorKind::Internal, message)));
        }
    }
}
