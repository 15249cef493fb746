//! What goes wrong is said with expected, got and where, under the status a client expects, and loses nothing.

use crate::cluster::{Cluster, petuum};
use petuum_client::{Client, Options, TableDefinition, Worker, WorkerOptions};
use petuum_net::status::from_status;
use petuum_net::wire;
use petuum_net::wire::data_client::DataClient;
use petuum_types::{ErrorKind, NonFinite, RowId, WorkerId, limits};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use tokio::time::Instant;
use tonic::codegen::http::uri::PathAndQuery;
use tonic_prost::ProstCodec;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_updates_are_refused_by_name_and_change_nothing() {
    let cluster = Cluster::start(1, 2).await;
    let client = cluster.client().await;
    let job = client.create_job("bad", 1, None).await.unwrap();
    let floats = job.create_table(&TableDefinition::f32("floats", 3, 0)).await.unwrap();
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let mut worker = session.thread();
    let wrong = [
        worker.inc(&floats, RowId(7), 3, 1.0f32).unwrap_err(),
        worker.inc(&floats, RowId(7), 0, 1i64).unwrap_err(),
        worker.inc(&floats, RowId(7), 0, f32::NAN).unwrap_err(),
        worker.inc_dense(&floats, RowId(7), 1, &[1.0f32, 2.0, 3.0][..]).unwrap_err(),
    ];
    for error in wrong {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.message().contains("floats") && error.message().contains('7'), "{error}");
    }
    worker.inc(&floats, RowId(7), 2, 1.5f32).unwrap();
    worker.clock().await.unwrap();
    assert_eq!(worker.get(&floats, RowId(7)).await.unwrap().as_f32().unwrap(), [0.0, 0.0, 1.5]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_that_were_left_out_are_counted_and_listed_once_for_all_replicas() {
    let cluster = Cluster::start(3, 2).await;
    let client = cluster.client().await;
    let job = client.create_job("nan", 1, None).await.unwrap();
    let definition = TableDefinition { non_finite: NonFinite::Drop, ..TableDefinition::f32("floats", 3, 0) };
    let floats = job.create_table(&definition).await.unwrap();
    job.create_table(&TableDefinition::f32("others", 3, 0)).await.unwrap();
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let mut worker = session.thread();
    // Rows of both shards.
    (0..16).for_each(|row| worker.inc_dense(&floats, RowId(row), 0, &[1.0f32, f32::NAN, 2.0][..]).unwrap());
    worker.clock().await.unwrap();
    worker.flush().await.unwrap();
    assert_eq!(worker.get(&floats, RowId(7)).await.unwrap().as_f32().unwrap(), [1.0, 0.0, 2.0]);
    cluster.assert_replicas_equal(2).await;
    let listed = petuum(&["ctl", "--endpoints", &cluster.addresses.join(","), "table", "list", "nan"]);
    let listed = String::from_utf8(listed.stdout).unwrap();
    let counts: Vec<_> = listed.lines().map(|line| line.split_whitespace().next_back().unwrap()).collect();
    assert_eq!(counts, ["OUT", "16", "0"], "{listed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p4_a_clock_with_updates_of_a_dropped_table_is_given_up_whole() {
    let cluster = Cluster::start(1, 4).await;
    let client = cluster.client().await;
    let job = client.create_job("drop", 1, None).await.unwrap();
    let kept = job.create_table(&TableDefinition::i64("kept", 1, 0)).await.unwrap();
    let gone = job.create_table(&TableDefinition::i64("gone", 1, 0)).await.unwrap();
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let mut worker = session.thread();
    job.drop_table("gone").await.unwrap();
    let again = job.drop_table("gone").await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::NotFound, "{again}");
    (0..16).for_each(|row| worker.inc(&kept, RowId(row), 0, 1i64).unwrap());
    worker.inc(&gone, RowId(0), 0, 1i64).unwrap();
    let error = match worker.clock().await {
        Ok(_) => worker.flush().await.unwrap_err(),
        Err(error) => error,
    };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains(&gone.schema().id.to_string()), "{error}");
    assert_eq!(worker.now().0, 0, "the clock was given up");
    for row in 0..16 {
        assert_eq!(worker.get(&kept, RowId(row)).await.unwrap().as_i64().unwrap(), [0]);
    }
    // The next attempt at the clock goes through.
    worker.inc(&kept, RowId(3), 0, 5i64).unwrap();
    worker.clock().await.unwrap();
    worker.flush().await.unwrap();
    assert_eq!(worker.get(&kept, RowId(3)).await.unwrap().as_i64().unwrap(), [5]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_do_not_exist_and_definitions_that_differ() {
    let cluster = Cluster::start(1, 1).await;
    let client = cluster.client().await;
    assert_eq!(client.job("nobody").await.err().unwrap().kind(), ErrorKind::NotFound);
    let job = client.create_job("names", 2, None).await.unwrap();
    assert_eq!(job.table("nothing").await.unwrap_err().kind(), ErrorKind::NotFound);
    let same = client.create_job("names", 2, None).await.unwrap();
    assert_eq!(same.info().id, job.info().id);
    assert_eq!(client.create_job("names", 3, None).await.err().unwrap().kind(), ErrorKind::AlreadyExists);
    assert_eq!(client.create_job("none", 0, None).await.err().unwrap().kind(), ErrorKind::InvalidArgument);
    job.create_table(&TableDefinition::f32("t", 4, 0)).await.unwrap();
    let other = job.create_table(&TableDefinition::f32("t", 5, 0)).await.unwrap_err();
    assert_eq!(other.kind(), ErrorKind::AlreadyExists, "{other}");
    let wide = job.create_table(&TableDefinition::f32("wide", 1_000_001, 0)).await.unwrap_err();
    assert_eq!(wide.kind(), ErrorKind::InvalidArgument, "{wide}");
    let nobody = job.worker(WorkerId(2), WorkerOptions::default()).await.err().unwrap();
    assert_eq!(nobody.kind(), ErrorKind::InvalidArgument, "{nobody}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_not_formed_says_so() {
    let cluster = Cluster::unformed(1);
    let error = Client::connect(&cluster.addresses, Options::default()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NotInitialized, "{error}");
    assert!(error.message().contains("petuum ctl init"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waits_end_at_their_deadline_and_name_whom_they_waited_for() {
    let mut cluster = Cluster::start(3, 2).await;
    let options = Options { deadline: Duration::from_secs(2), ..Options::default() };
    let client = Client::connect(&cluster.addresses, options).await.unwrap();
    let job = client.create_job("late", 1, None).await.unwrap();
    let table = job.create_table(&TableDefinition::i64("t", 1, 0)).await.unwrap();
    let session = job.worker(WorkerId(0), WorkerOptions::default()).await.unwrap();
    let mut worker = session.thread();
    cluster.kill(0);
    cluster.kill(1);
    worker.inc(&table, RowId(0), 0, 1i64).unwrap();
    worker.clock().await.unwrap();
    let begin = Instant::now();
    let error = worker.flush().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeadlineExceeded, "{error}");
    assert!(error.message().contains("shard ") && error.outcome_unknown(), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    // Nothing is lost: the same wait, after the majority is back, ends well.
    cluster.restart(0);
    cluster.restart(1);
    while worker.flush().await.is_err() {
        assert!(begin.elapsed() < Duration::from_secs(40), "the cluster did not come back");
    }
    assert_eq!(worker.get(&table, RowId(0)).await.unwrap().as_i64().unwrap(), [1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_versions_are_told_both_and_garbage_harms_nobody() {
    let cluster = Cluster::start(1, 1).await;
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096][..], &b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\xff\x09"[..]]
    {
        let mut stream = TcpStream::connect(&cluster.addresses[0]).unwrap();
        stream.write_all(bytes).unwrap();
    }
    let mut client = DataClient::connect(format!("http://{}", cluster.addresses[0])).await.unwrap();
    let status = client.read(wire::ReadRequest { format: 99, ..wire::ReadRequest::default() }).await.err().unwrap();
    assert_eq!(status.code(), tonic::Code::FailedPrecondition);
    assert!(status.message().contains("version 99") && status.message().contains("version 1"), "{status}");
    let frame = wire::CommitFrame {
        format: petuum_net::FORMAT,
        number: 1,
        messages: vec![wire::ShardMessage { shard: 0, message: vec![1, 2, 3].into() }],
    };
    let mut replies = client.commit(tokio_stream::iter([frame])).await.unwrap().into_inner();
    let status = replies.message().await.err().unwrap();
    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{status}");
    cluster.client().await.create_job("still there", 1, None).await.unwrap();
}

/// A stream that cannot be read on does not end as if all of it had been taken.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g10_frames_too_large_or_of_another_kind_are_refused_by_name() {
    let cluster = Cluster::start(1, 1).await;
    let limit = limits::MESSAGE_BYTES_MAX;
    let message = wire::ShardMessage { shard: 0, message: vec![0; limit].into() };
    let frame = wire::CommitFrame { format: petuum_net::FORMAT, number: 1, messages: vec![message] };
    let mut client = DataClient::new(cluster.channel(0));
    let mut replies = client.commit(tokio_stream::iter([frame])).await.unwrap().into_inner();
    let error = from_status(&replies.message().await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains(&format!("larger than {limit} bytes")), "{error}");
    // A message where a frame has a number.
    let other = wire::Jobs { jobs: vec![wire::JobInfo { workers: 3, ..wire::JobInfo::default() }] };
    let mut raw = tonic::client::Grpc::new(cluster.channel(0));
    raw.ready().await.unwrap();
    let path = PathAndQuery::from_static("/petuum.v1.Data/Commit");
    let codec = ProstCodec::<wire::Jobs, wire::CommitReply>::default();
    let request = tonic::Request::new(tokio_stream::iter([other]));
    let mut replies = raw.streaming(request, path, codec).await.unwrap().into_inner();
    let error = from_status(&replies.message().await.unwrap_err());
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.message().contains("CommitFrame"), "{error}");
    cluster.client().await.create_job("still there", 1, None).await.unwrap();
}
