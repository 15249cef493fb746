//! Writes values to an etcd cluster from several connections for some seconds, and prints one line: `bytes seconds`.
//!
//! Each connection puts values of 64 KiB under keys of its own, 64 of them in turn, and awaits each answer before the next
//! put, as etcd's own benchmark does, unless it is told to have more on their way. Connections are spread over the nodes.
//! What is put in the warm-up is not counted.

use etcd_client::Client;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CONNECTIONS: usize = 8;
const KEYS: usize = 64;
const VALUE_BYTES: usize = 64 * 1024;

type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let [endpoints, warm_up, seconds, in_flight] = &std::env::args().skip(1).collect::<Vec<_>>()[..] else {
        return Err("expected: etcd-load HOST:PORT[,HOST:PORT…] WARM-UP-SECONDS SECONDS PUTS-IN-FLIGHT".into());
    };
    let in_flight: usize = in_flight.parse()?;
    let endpoints: Vec<String> = endpoints.split(',').map(str::to_owned).collect();
    let (warm_up, seconds) = (Duration::from_secs(warm_up.parse()?), Duration::from_secs(seconds.parse()?));
    let count = Arc::new(AtomicU64::new(0));
    let mut writers = Vec::new();
    for connection in 0..CONNECTIONS {
        let client = Client::connect([&endpoints[connection % endpoints.len()]], None).await?;
        for first in 0..in_flight {
            writers.push(tokio::spawn(write(client.clone(), connection, (first, in_flight), count.clone())));
        }
    }
    tokio::time::sleep(warm_up).await;
    let (before, begin) = (count.load(Ordering::SeqCst), Instant::now());
    tokio::time::sleep(seconds).await;
    let (puts, took) = (count.load(Ordering::SeqCst) - before, begin.elapsed());
    for writer in writers {
        // A writer ends by itself only if a put failed.
        if writer.is_finished() {
            return Err(writer.await?.err().unwrap_or_else(|| "a writer ended early".into()));
        }
        writer.abort();
    }
    println!("{} {:.3}", puts * VALUE_BYTES as u64, took.as_secs_f64());
    Ok(())
}

/// Puts every `step`th value from `first` on until it is aborted or a put fails.
async fn write(
    client: Client,
    connection: usize,
    (first, step): (usize, usize),
    count: Arc<AtomicU64>,
) -> Result<(), Failure> {
    let mut kv = client.kv_client();
    for number in (first..).step_by(step) {
        let key = format!("{connection}/{}", number % KEYS);
        // Another value each time, as a training run writes.
        let value: Vec<u8> = (number as u64).to_le_bytes().repeat(VALUE_BYTES / 8);
        kv.put(key, value, None).await?;
        count.fetch_add(1, Ordering::SeqCst);
    }
    Ok(())
}
