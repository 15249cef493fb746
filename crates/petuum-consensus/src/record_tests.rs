//! Golden bytes and round trips of every record.

use super::*;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(record: &T, golden: &str) {
    let bytes = codec::encode(record);
    assert_eq!(hex(&bytes), golden.replace(' ', ""), "{record:?}");
    assert_eq!(&codec::decode::<T>(&bytes).unwrap(), record);
}

const BALLOT: Ballot = Ballot { term: 7, node: 2, committed: true };
const AT: Position = Position { term: 7, index: 300 };

fn members() -> Members {
    Members {
        voters: vec![BTreeSet::from([1, 2, 3])],
        addresses: BTreeMap::from([(1, "a:1".into()), (2, "b:2".into()), (3, "c:3".into())]),
    }
}

fn manifest() -> Manifest {
    Manifest { last: Some(AT), members_at: Some(Position { term: 0, index: 0 }), members: members() }
}

#[test]
fn golden() {
    check(&Some(AT), "01 01 07 fb2c01");
    check(&None::<Position>, "01 00");
    check(&BALLOT, "01 07 02 01");
    check(&members(), "01 01 03010203 03 01 03613a31 02 03623a32 03 03633a33");
    check(&manifest(), "01 01 07fb2c01 01 0000 01 03010203 03 01 03613a31 02 03623a32 03 03633a33");
    check(&AppendHead { vote: BALLOT, previous: Some(AT), committed: None }, "01 070201 01 07fb2c01 00");
    check(&AppendAnswer::Matching(Some(AT)), "01 00 01 07fb2c01");
    check(&AppendAnswer::Conflict(AT), "01 01 07fb2c01");
    check(&AppendAnswer::HigherVote(BALLOT), "01 02 070201");
    check(&VoteCall { vote: BALLOT, last: Some(AT), transfer: true }, "01 070201 01 07fb2c01 01");
    check(&VoteAnswer { vote: BALLOT, granted: true, last: None }, "01 070201 01 00");
    check(&TransferCall { from: BALLOT, to: 3, last: None }, "01 070201 03 00");
    check(&TransferAnswer::Done, "01 00");
    check(&TransferAnswer::VoteChanged { expected: BALLOT, actual: BALLOT }, "01 01 070201 070201");
    check(&TransferAnswer::NotFlushed { expected: Some(AT), actual: None }, "01 02 01 07fb2c01 00");
    check(
        &SnapshotHead { vote: BALLOT, manifest: manifest() },
        "01 070201 01 07fb2c01 01 0000 01 03010203 03 01 03613a31 02 03623a32 03 03633a33",
    );
}

#[test]
fn records_become_openrafts_types_and_back() {
    assert_eq!(Ballot::from(&Vote::from(BALLOT)), BALLOT);
    assert_eq!(Position::from(&LogId::from(AT)), AT);
    assert_eq!(Manifest::from(&manifest().into_meta().unwrap()), manifest());
    for answer in [AppendAnswer::Matching(None), AppendAnswer::Conflict(AT), AppendAnswer::HigherVote(BALLOT)] {
        assert_eq!(AppendAnswer::from(&AppendResult::from(answer)), answer);
    }
    let call = VoteCall { vote: BALLOT, last: Some(AT), transfer: true };
    assert_eq!(VoteCall::from(&VoteRequest::from(call)), call);
    let answer = VoteAnswer { vote: BALLOT, granted: false, last: Some(AT) };
    assert_eq!(VoteAnswer::from(&VoteResponse::from(answer)), answer);
    let call = TransferCall { from: BALLOT, to: 3, last: Some(AT) };
    assert_eq!(TransferCall::from(&TransferLeaderRequest::from(call)), call);
    let answers = [
        TransferAnswer::Done,
        TransferAnswer::VoteChanged { expected: BALLOT, actual: BALLOT },
        TransferAnswer::NotFlushed { expected: Some(AT), actual: None },
    ];
    for answer in answers {
        assert_eq!(TransferAnswer::from(&Result::from(answer)), answer);
    }
}

#[test]
fn nobody_is_a_membership_too_but_voters_without_address_are_not() {
    assert_eq!(Members::default().into_membership().unwrap(), Membership::default());
    let unknown = Members { voters: vec![BTreeSet::from([1])], addresses: BTreeMap::new() };
    assert!(unknown.into_membership().is_err());
}
