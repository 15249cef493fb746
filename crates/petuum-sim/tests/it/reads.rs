//! Reads without a session (P12), of the latest rows and of a min clock, around failures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use petuum_client::{Client, ReadFrom, Table, TableDefinition, Worker, WorkerOptions};
use petuum_net::status::from_status;
use petuum_net::transport::{ChannelSettings, Connector, channel};
use petuum_net::wire;
use petuum_net::wire::data_client::DataClient;
use petuum_sim::{SimCluster, SimConnector};
use petuum_types::{Clock, Error, ErrorKind, GroupId, LogIndex, RowId, ShardId, Values, WorkerId};
use tokio::time::Instant;

use crate::support::{SOON, answer, call, options_of, run, settled};

const ROW: RowId = RowId(7);

/// A job of one worker and its table, with where the row is.
#[derive(Clone)]
struct Made {
    table: Table,
    shard: ShardId,
    request: wire::ReadRequest,
}

fn make(cluster: &mut SimCluster) -> Made {
    call(cluster, "maker", |client| async move {
        let job = client.create_job("job", 1, Some(Duration::from_secs(300))).await?;
        let table = job.create_table(&TableDefinition::i64("table", 2, 0)).await?;
        let shard = client.map().shard_of(table.schema().id, ROW);
        let request = wire::ReadRequest {
            format: petuum_net::FORMAT,
            shard: shard.0,
            job: job.info().id.0,
            generation: job.info().generation.0,
            epoch: client.map().epoch.0,
            table: table.schema().id.0,
            rows: vec![ROW.0],
            wait_ms: 1000,
            ..wire::ReadRequest::default()
        };
        Ok(Made { table, shard, request })
    })
}

/// Adds 1 to the row in one clock, which every shard has applied when this returns.
async fn add(client: Client) -> Result<Clock, Error> {
    let job = client.job("job").await?;
    let table = job.table("table").await?;
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await?;
    let mut thread = session.thread();
    thread.inc(&table, ROW, 0, 1i64)?;
    thread.clock().await?;
    thread.flush().await?;
    Ok(thread.now())
}

/// The row's first column, its min clock, and the indices it comes with.
async fn read(client: Client, from: ReadFrom) -> Result<(i64, Clock, LogIndex, LogIndex), Error> {
    let job = client.job("job").await?;
    let table = job.table("table").await?;
    let rows = job.read(&table, &[ROW], from).await?;
    assert_eq!((rows.len(), rows[0].row), (1, ROW));
    let Values::I64(values) = rows[0].values.as_ref() else { panic!("an i64 table") };
    Ok((values[0], rows[0].min_clock, rows[0].index, rows[0].changed))
}

/// What one node answers to the request by itself: the row's first column.
async fn ask(address: String, request: wire::ReadRequest) -> Result<i64, Error> {
    let connector: Arc<dyn Connector> = Arc::new(SimConnector);
    let mut client = DataClient::new(channel(&connector, &address, ChannelSettings::default()).unwrap());
    let mut chunks = client.read(request).await.map_err(|status| from_status(&status))?.into_inner();
    let chunk = chunks.message().await.map_err(|status| from_status(&status))?.unwrap();
    Ok(i64::from_le_bytes(chunk.rows[0].values[..8].try_into().unwrap()))
}

#[test]
fn p12_a_reader_without_a_session_gets_the_latest_rows_or_those_of_a_clock() {
    let mut cluster = settled(1);
    make(&mut cluster);
    let untouched = call(&mut cluster, "early", |client| read(client, ReadFrom::Latest));
    assert_eq!((untouched.0, untouched.1, untouched.3), (0, Clock(0), LogIndex(0)));
    call(&mut cluster, "one", add);
    let (value, min_clock, index, changed) = call(&mut cluster, "latest", |client| read(client, ReadFrom::Latest));
    assert_eq!((value, min_clock), (1, Clock(1)));
    assert!(LogIndex(0) < changed && changed <= index, "{changed:?} {index:?}");
    // One that is not there yet is waited for: the worker comes half a second later.
    let writer = cluster.endpoints();
    cluster.client("two", async move {
        tokio::time::sleep(Duration::from_millis(500)).await;
        add(Client::connect(&writer, options_of("two")).await?).await?;
        Ok(())
    });
    let (value, min_clock, ..) = call(&mut cluster, "clock", |client| read(client, ReadFrom::Clock(Clock(2))));
    assert_eq!((value, min_clock), (2, Clock(2)));
}

/// Without the confirmation by a majority the old leader would answer with what it has: it is asked for that first.
#[test]
fn p12_a_leader_deposed_without_knowing_does_not_answer_the_latest_with_old_data() {
    for seed in 1..4 {
        let mut cluster = settled(seed);
        let made = make(&mut cluster);
        call(&mut cluster, "one", add);
        let group = GroupId::of_shard(made.shard);
        let old = cluster.leader(group).unwrap();
        let nodes = cluster.nodes();
        let at = nodes.iter().position(|node| *node == old).unwrap();
        nodes.iter().filter(|node| **node != old).for_each(|other| cluster.cut(&old, other));
        let moved = |cluster: &mut SimCluster| cluster.leader(group).is_some_and(|leader| leader != old);
        cluster.step_until("another leader", SOON, moved).unwrap();
        call(&mut cluster, "two", add);
        let address = cluster.endpoints()[at].clone();
        let stale = ask(address.clone(), made.request.clone());
        assert_eq!(run(&mut cluster, "any", stale), Ok(1), "the old leader does not have the second update");
        let latest = ask(address, wire::ReadRequest { latest: true, ..made.request.clone() });
        let refused = run(&mut cluster, "strict", latest).unwrap_err();
        assert!(refused.is_retryable(), "{refused}");
        // A client that reaches it and the others gets the new one.
        let (value, ..) = call(&mut cluster, "latest", |client| read(client, ReadFrom::Latest));
        assert_eq!(value, 2);
    }
}

#[test]
fn p12_a_follower_names_the_leader_and_answers_a_clock_it_has() {
    let mut cluster = settled(1);
    let made = make(&mut cluster);
    call(&mut cluster, "one", add);
    let leader = cluster.leader(GroupId::of_shard(made.shard)).unwrap();
    let at = cluster.nodes().iter().position(|node| *node != leader).unwrap();
    let address = cluster.endpoints()[at].clone();
    let latest = ask(address.clone(), wire::ReadRequest { latest: true, ..made.request.clone() });
    let refused = run(&mut cluster, "latest", latest).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Unavailable, "{refused}");
    let clock = ask(address, wire::ReadRequest { min_clock: 1, ..made.request });
    assert_eq!(run(&mut cluster, "clock", clock), Ok(1));
}

#[test]
fn p12_a_table_that_is_gone_is_not_found_whatever_freshness_is_asked_for() {
    let mut cluster = settled(1);
    let made = make(&mut cluster);
    call(&mut cluster, "dropper", |client| async move { client.job("job").await?.drop_table("table").await });
    for (name, from) in [("latest", ReadFrom::Latest), ("clock", ReadFrom::Clock(Clock(0)))] {
        let table = made.table.clone();
        let gone = answer(&mut cluster, name, options_of(name), move |client| async move {
            client.job("job").await?.read(&table, &[ROW], from).await
        });
        assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound);
    }
    // One that nobody has heard of, named by a stale or wrong handle.
    let mut schema = made.table.schema().clone();
    schema.id.0 += 100;
    let unknown = answer(&mut cluster, "unknown", options_of("unknown"), |client| async move {
        client.job("job").await?.read(&Table::new(schema), &[ROW], ReadFrom::Latest).await
    });
    assert_eq!(unknown.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn p12_a_read_that_cannot_be_served_ends_at_its_deadline_and_says_what_it_waits_for() {
    let mut cluster = settled(1);
    let made = make(&mut cluster);
    let deadline = Duration::from_secs(3);
    let options = petuum_client::Options { deadline, ..options_of("early") };
    let begin = cluster.elapsed();
    let early = answer(&mut cluster, "early", options.clone(), |client| read(client, ReadFrom::Clock(Clock(9))));
    let early = early.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::DeadlineExceeded);
    assert!(early.message().contains("min clock 9"), "{early}");
    let took = cluster.elapsed() - begin;
    assert!(deadline <= took && took < deadline + Duration::from_secs(2), "{took:?}");
    // All nodes answer, none reaches another: no majority confirms anybody. The job was asked for before.
    let state = Rc::new(Cell::new("starting"));
    let (told, endpoints) = (Rc::clone(&state), cluster.endpoints());
    let result = Rc::new(RefCell::new(None));
    let give = Rc::clone(&result);
    cluster.client("late", async move {
        let job = Client::connect(&endpoints, options).await?.job("job").await?;
        told.set("ready");
        while told.get() != "cut" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let begin = Instant::now();
        let read = job.read(&made.table, &[ROW], ReadFrom::Latest).await;
        *give.borrow_mut() = Some((read, begin.elapsed()));
        Ok(())
    });
    cluster.step_until("the job", SOON, |_| state.get() == "ready").unwrap();
    let nodes = cluster.nodes();
    for (a, b) in [(0, 1), (0, 2), (1, 2)] {
        cluster.cut(&nodes[a], &nodes[b]);
    }
    state.set("cut");
    cluster.step_until("the read", SOON, |_| result.borrow().is_some()).unwrap();
    let (read, took) = result.take().unwrap();
    let late = read.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::DeadlineExceeded, "{late}");
    assert!(late.message().contains(&made.shard.to_string()), "{late}");
    assert!(deadline <= took && took < deadline + Duration::from_secs(2), "{took:?}");
}
