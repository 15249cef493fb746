//! What goes onto the wire comes back, in bytes that never change.

use super::*;
use petuum_types::Values;
use petuum_types::outcome::{Fence, Refusal, Retry};
use petuum_types::read::RowAnswer;
use std::sync::Arc;

#[test]
fn every_outcome_survives_the_wire() {
    let outcomes = [
        Outcome::Accepted,
        Outcome::Ticked,
        Outcome::Refused(Refusal::UnknownTable { table: TableId(3) }),
        Outcome::Retry(Retry::Gap { expected: Sequence(9) }),
        Outcome::Fenced(Fence::Replaced { by: Incarnation(7) }),
    ];
    for outcome in outcomes {
        let reply = Reply { shard: ShardId(1), sequence: Sequence(2), outcome };
        assert_eq!(reply_from_wire(&reply_to_wire(&reply, Clock(5))).unwrap(), (reply, Clock(5)));
    }
}

/// Programs in other languages speak these: a field's number and type never change.
#[test]
fn golden_bytes_of_what_workers_send_and_hear() {
    use prost::Message;
    let hex = |bytes: Vec<u8>| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let message = wire::ShardMessage { shard: 3, message: vec![1, 2].into() };
    let frame = wire::CommitFrame { format: 1, number: 2, messages: vec![message] };
    assert_eq!(hex(frame.encode_to_vec()), "080110021a06080312020102");
    let reply = Reply { shard: ShardId(3), sequence: Sequence(2), outcome: Outcome::Accepted };
    let replies = wire::CommitReply { replies: vec![reply_to_wire(&reply, Clock(5))] };
    assert_eq!(hex(replies.encode_to_vec()), "0a08080310021a004005");
    let read = wire::ReadRequest {
        format: 1,
        shard: 2,
        job: 3,
        generation: 4,
        epoch: 5,
        reader: Some(wire::Reader { worker: 6, incarnation: 7 }),
        table: 8,
        rows: vec![9, 300],
        min_clock: 10,
        own_clock: 11,
        min_index: 12,
        wait_ms: 13,
        latest: true,
    };
    assert_eq!(hex(read.encode_to_vec()), "080110021803200428053204080610073808420309ac02480a500b580c600d6801");
    let values = Arc::new(Values::F32(vec![1.0, -2.0]));
    let rows = vec![RowAnswer { row: RowId(9), changed: LogIndex(4), values }];
    let answer = ReadAnswer { index: LogIndex(12), min_clock: Clock(10), own_clock: Clock(11), rows };
    let chunks: Vec<_> = chunks_of_answer(&answer, 1024).iter().map(|chunk| hex(chunk.encode_to_vec())).collect();
    assert_eq!(chunks, ["080c100a180b220e0809100422080000803f000000c0"]);
}

#[test]
fn a_wide_row_comes_in_pieces_of_one_index() {
    let values = Values::F32((0..1000u16).map(f32::from).collect());
    let row = RowAnswer { row: RowId(1), changed: LogIndex(4), values: Arc::new(values.clone()) };
    let answer = ReadAnswer { index: LogIndex(9), min_clock: Clock(2), own_clock: Clock(3), rows: vec![row; 2] };
    let chunks = chunks_of_answer(&answer, 1024);
    assert!(chunks.len() >= 8 && chunks.iter().all(|c| c.index == 9));
    let bytes: Vec<u8> = chunks.iter().flat_map(|c| &c.rows).flat_map(|r| r.values.clone()).collect();
    let Values::F32(read) = Values::read_le(ValueType::F32, &bytes).unwrap() else { panic!("f32") };
    assert_eq!(read[..1000], read[1000..]);
    assert_eq!(Values::F32(read[..1000].to_vec()), values);
}

#[test]
fn schemas_and_maps_survive_the_wire() {
    let schema = TableSchema {
        id: TableId(4),
        job: JobId(1),
        name: "w".into(),
        width: 10,
        value_type: ValueType::F32,
        initial: Initial::Normal { mean: bits_of(0.5), deviation: bits_of(2.0) },
        seed: 9,
        non_finite: NonFinite::Drop,
        staleness: Staleness(2),
    };
    assert_eq!(table_from_wire(&table_to_wire(&schema, true)).unwrap(), schema);
    let nodes = (1..=3).map(|i| (NodeId(i), format!("127.0.0.1:{i}"))).collect();
    let map = ShardMap::spread(nodes, 8, 3).unwrap();
    let known =
        map_from_wire(&map_to_wire(ClusterId(7), &map, Some(NodeId(2)), |s| Some(NodeId(u64::from(s.0) % 3 + 1))));
    let known = known.unwrap();
    assert_eq!((known.map, known.control_leader, known.leaders.len()), (map, Some(NodeId(2)), 8));
}
