//! A store of numbers that acknowledges each after a sync, and a client that sends them in order and survives the
//! store's deaths.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use petuum_net::transport::{Connector, Io, Listener};
use petuum_sim::disk::Disk;
use petuum_sim::{Settings, SimConnector, SimListener, Simulation};
use rocksdb::{DB, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time;

const PORT: u16 = 7000;
const DEADLINE: Duration = Duration::from_millis(500);
const SYNC_LATENCY: Duration = Duration::from_millis(2);

pub(crate) fn open(disk: &Disk) -> Result<DB, rocksdb::Error> {
    let mut options = Options::default();
    disk.configure(&mut options);
    options.create_if_missing(true);
    DB::open(&options, Disk::ROOT)
}

pub(crate) fn contains(db: &DB, number: u64) -> bool {
    db.get(number.to_be_bytes()).unwrap().is_some()
}

async fn serve(disk: Disk) -> turmoil::Result {
    let db = Arc::new(open(&disk)?);
    let mut listener = SimListener::bind("store", PORT).await?;
    tracing::info!(address = listener.address(), "serving");
    loop {
        let connection = listener.accept().await?;
        tokio::spawn(answer(connection, Arc::clone(&db)));
    }
}

async fn answer(mut connection: Box<dyn Io>, db: Arc<DB>) -> io::Result<()> {
    loop {
        let number = connection.read_u64().await?;
        db.put(number.to_be_bytes(), [7; 100]).map_err(io::Error::other)?;
        time::sleep(SYNC_LATENCY).await;
        db.flush_wal(true).map_err(io::Error::other)?;
        connection.write_u64(number).await?;
    }
}

/// Sends `0..count`, each until it is acknowledged, over as many connections as it takes.
async fn send(count: u64, acked: Rc<RefCell<Vec<u64>>>) -> turmoil::Result {
    let mut connection = None;
    let mut next = 0;
    while next < count {
        match time::timeout(DEADLINE, exchange(connection.take(), next)).await {
            Ok(Ok(open)) => {
                acked.borrow_mut().push(next);
                next += 1;
                connection = Some(open);
            }
            failed => {
                // std's clock, to show in the trace that it is virtual.
                #[expect(clippy::disallowed_methods, reason = "shows that this clock is simulated too")]
                let now = std::time::SystemTime::now();
                tracing::info!(next, ?now, failed = ?failed.map(|answer| answer.err()), "again");
            }
        }
    }
    Ok(())
}

async fn exchange(connection: Option<Box<dyn Io>>, number: u64) -> io::Result<Box<dyn Io>> {
    let mut connection = match connection {
        Some(open) => open,
        None => SimConnector.connect(format!("store:{PORT}")).await?,
    };
    connection.write_u64(number).await?;
    let answer = connection.read_u64().await?;
    assert_eq!(answer, number);
    Ok(connection)
}

/// The simulation, its store's disk, and the numbers acknowledged so far.
pub(crate) struct Scenario {
    pub(crate) simulation: Simulation<'static>,
    pub(crate) disk: Disk,
    pub(crate) acked: Rc<RefCell<Vec<u64>>>,
}

impl Scenario {
    pub(crate) fn new(seed: u64, count: u64) -> Self {
        let disk = Disk::new();
        let mut simulation = Simulation::new(&Settings::new(seed));
        let acked = Rc::new(RefCell::new(Vec::new()));
        let at = disk.clone();
        simulation.machine("store", &disk, move || serve(at.clone()));
        simulation.client("client", send(count, Rc::clone(&acked)));
        Self { simulation, disk, acked }
    }

    /// Runs to the end through a kill and a power failure, and stops the store.
    pub(crate) fn run_with_faults(&mut self) {
        let sim = &mut self.simulation;
        sim.run_for(Duration::from_millis(700)).unwrap();
        sim.kill("store");
        sim.run_for(Duration::from_millis(150)).unwrap();
        sim.start("store");
        sim.run_for(Duration::from_millis(900)).unwrap();
        let lost = sim.lose_power(&["store"]);
        tracing::info!(?lost, "power lost");
        sim.run_for(Duration::from_millis(300)).unwrap();
        sim.restore_power(&["store"]);
        sim.run().unwrap();
        sim.kill("store");
    }
}
