//! Clusters to test on, and calls from hosts of their own.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use petuum_client::{Client, Options};
use petuum_sim::SimCluster;
use petuum_sim::cluster::client_options;
use petuum_types::Error;

/// Everything that a test waits for comes within this.
pub(crate) const SOON: Duration = Duration::from_secs(20);

pub(crate) fn formed(seed: u64) -> SimCluster {
    let mut cluster = SimCluster::builder(seed).nodes(3).shards(2).build();
    cluster.form(SOON).unwrap();
    cluster
}

/// A cluster whose groups have all begun. Until a group's first leader has told the others who its members are, nobody
/// can take its place.
pub(crate) fn settled(seed: u64) -> SimCluster {
    let mut cluster = formed(seed);
    settle(&mut cluster);
    cluster
}

/// Waits until every replica takes part.
pub(crate) fn settle(cluster: &mut SimCluster) {
    let begun = |cluster: &mut SimCluster| {
        cluster.views().iter().flat_map(|view| &view.replicas).all(|replica| replica.applied.is_some())
    };
    cluster.step_until("every replica to apply an entry", SOON, begun).unwrap();
}

/// Runs `work` to its end on a host of its own and gives what it gave.
pub(crate) fn run<T: 'static>(cluster: &mut SimCluster, name: &str, work: impl Future<Output = T> + 'static) -> T {
    let given = Rc::new(RefCell::new(None));
    let give = Rc::clone(&given);
    cluster.client(name, async move {
        *give.borrow_mut() = Some(work.await);
        Ok(())
    });
    cluster.step_until(name, 2 * SOON, |_| given.borrow().is_some()).unwrap();
    given.take().unwrap()
}

/// Options of a client that bears this name. Two clients of one seed would draw the same request ids, and the second be
/// taken for the first (P17).
pub(crate) fn options_of(name: &str) -> Options {
    client_options(name.bytes().fold(1, |seed, byte| (seed << 8) ^ (seed >> 56) ^ u64::from(byte)))
}

/// What a call of a new client is answered, with these options.
pub(crate) fn answer<T: 'static, F>(
    cluster: &mut SimCluster,
    name: &str,
    options: Options,
    call: impl FnOnce(Client) -> F + 'static,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>> + 'static,
{
    let endpoints = cluster.endpoints();
    run(cluster, name, async move { call(Client::connect(&endpoints, options).await?).await })
}

/// Runs a call of a new client to its end, which must be a success.
pub(crate) fn call<T: 'static, F>(cluster: &mut SimCluster, name: &str, call: impl FnOnce(Client) -> F + 'static) -> T
where
    F: Future<Output = Result<T, Error>> + 'static,
{
    answer(cluster, name, options_of(name), call).unwrap()
}
