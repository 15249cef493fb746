//! A program without a session that looks at the latest rows, again and again, while the workers work.

use std::time::Duration;

use petuum_client::{Client, Job, Options, ReadFrom, Table};
use petuum_sim::HostResult;
use petuum_types::{Error, ErrorKind, RowId};

use super::shared::{Handle, JOB, TABLE};

/// Its host.
pub(super) const HOST: &str = "reader";

/// How long it waits for an answer; then it asks anew.
const DEADLINE: Duration = Duration::from_secs(5);

async fn open(endpoints: &[String], options: Options) -> Result<(Job, Table), Error> {
    let job = Client::connect(endpoints, options).await?.job(JOB).await?;
    let table = job.table(TABLE).await?;
    Ok((job, table))
}

/// Whether another attempt may succeed.
fn is_passing(error: &Error) -> bool {
    error.is_retryable() || error.kind() == ErrorKind::DeadlineExceeded
}

/// A reader's life from one start to its end.
pub(super) async fn run(handle: Handle, endpoints: Vec<String>, options: Options) -> HostResult {
    let mut random = fastrand::Rng::with_seed(options.seed);
    let hurries = random.bool();
    let options = Options { deadline: DEADLINE, ..options };
    let (job, table) = loop {
        match open(&endpoints, options.clone()).await {
            Err(error) if is_passing(&error) => {}
            opened => break opened?,
        }
    };
    loop {
        let pause = if hurries { 2..20 } else { 5..200 };
        tokio::time::sleep(Duration::from_millis(random.u64(pause))).await;
        let (rows, floors) = {
            let shared = handle.borrow();
            let rows: Vec<RowId> = shared.rows.iter().copied().filter(|_| random.bool()).collect();
            (rows, shared.oracle.floors())
        };
        let found = job.read(&table, &rows, ReadFrom::Latest).await;
        let mut shared = handle.borrow_mut();
        // In the end the table is dropped.
        if shared.over {
            return Ok(());
        }
        match found {
            Ok(found) => {
                for read in found {
                    let values = read.values.as_i64().ok_or("an i64 table answered with other values")?;
                    shared.oracle.read_latest(read.row.0, values, &floors)?;
                }
                shared.latest_reads += 1;
            }
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
