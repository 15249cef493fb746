//! `petuum serve`: one node.

use crate::config::{self, Flags};
use crate::output::{Failure, line, note};
use petuum_net::transport::{Listener, Tcp, TcpAcceptor};
use petuum_server::{Node, Parts, Stopped, SyncMode};
use petuum_storage::{Store, StoreOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Flags of `petuum serve`. Everything else is in the file or the environment.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// TOML file; every key can also be given as PETUUM_KEY or PETUUM_NODE__KEY.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory; created if missing [default: petuum-data]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:7070]
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// The address others reach this node at [default: where it listens]
    #[arg(long, value_name = "HOST:PORT")]
    advertise: Option<String>,
    /// Started by another command, which tells people what they need to know
    #[arg(long, hide = true)]
    child: bool,
    /// Stop when standard input ends, as it does when the process that holds its other end dies
    #[arg(long, hide = true)]
    with_parent: bool,
}

/// Runs a node until it is told to stop or must not go on.
pub(crate) async fn run(args: Args) -> Result<(), Failure> {
    let flags = Flags { data: args.data, listen: args.listen, advertise: args.advertise };
    let config = config::load(args.config.as_deref(), &flags)?;
    check_loopback("listen", &config.listen)?;
    config.advertise.as_deref().map_or(Ok(()), |address| check_loopback("advertise", address))?;
    let listener = TcpAcceptor::bind(&config.listen).await.map_err(Failure::new)?;
    let store = open(&config.data)?;
    let address = listener.address();
    let node = Node::start(Parts {
        store,
        listener: Box::new(listener),
        connector: Arc::new(Tcp),
        advertise: config.advertise,
        settings: config.node,
        seed: RandomState::new().build_hasher().finish(),
        sync: SyncMode::Thread,
    })?;
    // The line that scripts wait for.
    line(format_args!("listening on {address}"));
    let tell = |text: String| {
        if !args.child {
            note(text)
        }
    };
    if node.identity().is_none() {
        tell(format!("waiting to belong to a cluster: petuum ctl init --nodes {address},…"));
    }
    let mut terminate = signal(SignalKind::terminate()).map_err(Failure::new)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(Failure::new)?;
    let orphaned = async { if args.with_parent { end_of_input().await } else { std::future::pending().await } };
    let stopped = tokio::select! {
        stopped = node.ended() => stopped,
        () = orphaned => Stopped::Asked,
        _ = terminate.recv() => Stopped::Asked,
        _ = interrupt.recv() => Stopped::Asked,
    };
    if let Stopped::Failed(error) = stopped {
        return Err(error.into());
    }
    tell("stopping: leaderships are handed over; a second signal stops at once".to_owned());
    tokio::select! {
        _ = node.stop() => {}
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}

/// Waits for the end of standard input.
async fn end_of_input() {
    let (sender, ended) = tokio::sync::oneshot::channel::<()>();
    #[expect(clippy::disallowed_methods, reason = "the runtime would wait at its end for a read that never returns")]
    std::thread::spawn(move || {
        // However it ends, nobody is at the other end any more.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(sender);
    });
    // Dropped, never sent.
    let _ = ended.await;
}

/// This version has no encryption and no authentication: it listens on loopback only.
fn check_loopback(setting: &str, address: &str) -> Result<(), Failure> {
    let addresses: Vec<SocketAddr> = address
        .to_socket_addrs()
        .map_err(|e| Failure::new(format_args!("{setting} = {address:?} is no host:port: {e}")))?
        .collect();
    match addresses.iter().find(|a| !a.ip().is_loopback()) {
        None => Ok(()),
        Some(outside) => Err(Failure::new(format_args!(
            "{setting} = {address:?} is {outside}, which others can reach; this version has no encryption or \
             authentication and stays on loopback: use 127.0.0.1"
        ))),
    }
}

fn open(data: &Path) -> Result<Store, Failure> {
    let at = |e: std::io::Error| Failure::new(format_args!("data directory {}: {e}", data.display()));
    std::fs::create_dir_all(data).map_err(at)?;
    Store::open(data, StoreOptions::default()).map_err(Failure::new)
}
