//! Append, read, truncate, purge, destroy, records.

use super::{Opened, append, ignore, indices};
use crate::{Error, Record, keys, keys::Family};
use petuum_types::GroupId;

#[test]
fn appended_entries_are_readable_at_once_and_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    assert_eq!(group.last().unwrap(), None);
    assert_eq!(group.first().unwrap(), None);
    let entries: [(u64, &[u8]); 3] = [(0, b"a"), (1, b""), (2, b"ccc")];
    group.append(entries, ignore()).unwrap();
    assert_eq!(group.last().unwrap().unwrap(), (2, "ccc".into()));
    opened.sync();
    drop((opened, group));

    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    assert_eq!(group.first().unwrap(), Some(0));
    let read = group.read(0, 10, usize::MAX).unwrap();
    assert_eq!(read, entries.map(|(index, entry)| (index, bytes::Bytes::from_static(entry))));
    assert_eq!(opened.group(0).last().unwrap(), None, "a neighbour sees nothing");
    assert_eq!(opened.group(2).last().unwrap(), None, "a neighbour sees nothing");
}

#[test]
fn groups_do_not_mix() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    for number in [0, 1, 255, 256, u32::MAX] {
        append(&opened.group(number), 5..=5 + u64::from(number % 7));
    }
    for number in [0, 1, 255, 256, u32::MAX] {
        let group = opened.group(number);
        let last = 5 + u64::from(number % 7);
        assert_eq!(group.first().unwrap(), Some(5));
        assert_eq!(group.last().unwrap().unwrap().0, last);
        assert_eq!(indices(&group, 5, u64::MAX), (5..=last).collect::<Vec<_>>());
    }
    opened.group(255).destroy().unwrap();
    assert_eq!(opened.group(255).last().unwrap(), None);
    assert_eq!(opened.group(1).last().unwrap().unwrap().0, 6);
    assert_eq!(opened.group(256).last().unwrap().unwrap().0, 9);
}

#[test]
fn a_read_is_capped_in_bytes_but_never_empty() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    group.append((1..=4).map(|index| (index, vec![0; 1000])), ignore()).unwrap();
    let read = |from, end, bytes| group.read(from, end, bytes).unwrap().into_iter().map(|e| e.0).collect::<Vec<_>>();
    assert_eq!(read(1, 5, 0), [1], "an entry larger than the cap is still read");
    assert_eq!(read(1, 5, 1999), [1]);
    assert_eq!(read(1, 5, 2000), [1, 2]);
    assert_eq!(read(3, 100, usize::MAX), [3, 4], "fewer if the log ends");
    assert_eq!(read(3, 3, usize::MAX), [0; 0]);
}

#[test]
fn a_missing_entry_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    append(&group, 1..=6);
    let hole = |from| match group.read(from, 100, usize::MAX) {
        Err(Error::Hole { group, index, found, .. }) => (group, index, found),
        other => panic!("{other:?}"),
    };
    assert_eq!(hole(0), (GroupId(1), 0, Some(1)));
    assert_eq!(hole(7), (GroupId(1), 7, None));
    group.purge(2, b"").unwrap();
    assert_eq!(hole(2), (GroupId(1), 2, Some(3)));
    // An entry lost from the middle, as no caller of this crate can lose it.
    let lost = keys::log(GroupId(1), 4);
    opened
        .store
        .engine()
        .write(|batch| {
            batch.delete_span(Family::Log, (4, 4), |_| lost);
            Ok(())
        })
        .unwrap();
    assert_eq!(hole(3), (GroupId(1), 4, Some(5)));
    let error = group.read(4, 6, 10).unwrap_err().to_string();
    assert!(error.contains("shard 0 has no entry 4; the next one there is 5"), "{error}");
    // And one lost from the beginning, noticed at the first look after a start.
    let lost = keys::log(GroupId(1), 3);
    opened
        .store
        .engine()
        .write(|batch| {
            batch.delete_span(Family::Log, (3, 3), |_| lost);
            Ok(())
        })
        .unwrap();
    opened.sync();
    drop((opened, group));
    let opened = Opened::at(dir.path());
    assert!(matches!(opened.group(1).last(), Err(Error::Hole { index: 3, found: Some(5), .. })));
}

#[test]
fn entries_out_of_order_are_refused_whole() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    append(&group, 1..=3);
    for wrong in [vec![5], vec![3], vec![4, 6], vec![4, 4]] {
        let (done, outcome) = super::watched();
        let result = group.append(wrong.iter().map(|index| (*index, b"x")), done);
        assert!(matches!(result, Err(Error::OutOfOrder { .. })), "{wrong:?}");
        assert!(matches!(outcome.recv().unwrap(), Err(Error::OutOfOrder { .. })));
        assert_eq!(group.last().unwrap().unwrap().0, 3);
    }
    assert!(opened.store.poisoned().is_none(), "a caller's mistake is not the disk's");
    append(&group, 4..=4);
}

#[test]
fn truncation_keeps_up_to_an_index_and_the_log_goes_on_there() {
    let dir = tempfile::tempdir().unwrap();
    // The second length is deleted as a range.
    for length in [10, 1000] {
        let opened = Opened::at(dir.path());
        let group = opened.group(u32::try_from(length).unwrap());
        append(&group, 0..=length);
        group.truncate_after(Some(length + 5)).unwrap();
        assert_eq!(group.last().unwrap().unwrap().0, length);
        group.truncate_after(Some(3)).unwrap();
        assert_eq!(indices(&group, 0, 100), [0, 1, 2, 3]);
        group.append([(4, b"anew")], ignore()).unwrap();
        opened.sync();
        drop((opened, group));

        let opened = Opened::at(dir.path());
        let group = opened.group(u32::try_from(length).unwrap());
        assert_eq!(indices(&group, 0, 100), [0, 1, 2, 3, 4]);
        assert_eq!(group.last().unwrap().unwrap().1, "anew");
        group.truncate_after(None).unwrap();
        assert_eq!(group.last().unwrap(), None);
        append(&group, 7..=7);
        assert_eq!(group.first().unwrap(), Some(7));
    }
}

#[test]
fn a_purge_is_remembered_over_many_restarts() {
    let dir = tempfile::tempdir().unwrap();
    let mut next = 0;
    for round in 0..8u64 {
        let opened = Opened::at(dir.path());
        let group = opened.group(3);
        // Far enough for a range now and then.
        append(&group, next..=next + 40 * (round + 1));
        next += 40 * (round + 1) + 1;
        let upto = next - 3;
        group.purge(upto, format!("marker {round}").as_bytes()).unwrap();
        group.purge(upto - 1, b"lower: changes nothing").unwrap();
        opened.sync();
        drop((opened, group));

        let opened = Opened::at(dir.path());
        let group = opened.group(3);
        assert_eq!(group.purged().unwrap().unwrap(), (upto, format!("marker {round}").into()));
        assert_eq!(group.get_record(Record::Purged).unwrap().unwrap(), format!("marker {round}"));
        assert_eq!(group.first().unwrap(), Some(upto + 1));
        assert_eq!(indices(&group, upto + 1, u64::MAX), [next - 2, next - 1]);
    }
}

#[test]
fn a_purge_past_the_end_empties_the_log_which_goes_on_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(3);
    append(&group, 1..=5);
    group.purge(100, b"installed").unwrap();
    assert_eq!(group.last().unwrap(), None);
    assert!(matches!(group.append([(6, b"x")], ignore()), Err(Error::OutOfOrder { expected: 101, got: 6, .. })));
    append(&group, 101..=102);
    assert_eq!(group.first().unwrap(), Some(101));
    let late = opened.group(4);
    append(&late, 50..=51);
    assert!(matches!(late.purge(20, b""), Err(Error::Hole { index: 21, found: Some(50), .. })));
}

#[test]
fn purged_keys_do_not_slow_searches_down() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(1);
    append(&group, 0..=9);
    rocksdb::perf::set_perf_stats(rocksdb::perf::PerfStatsLevel::EnableCount);
    let mut context = rocksdb::perf::PerfContext::default();
    let mut skipped = Vec::new();
    for index in 10..2010 {
        append(&group, index..=index);
        group.purge(index - 10, b"").unwrap();
        context.reset();
        assert_eq!(indices(&group, index - 9, index + 1).len(), 10);
        skipped.push(context.metric(rocksdb::PerfMetric::InternalDeleteSkippedCount));
    }
    assert!(skipped.iter().all(|skipped| *skipped == 0), "deleted keys visited: {skipped:?}");
}

#[test]
fn records_are_separate_and_destroyed_with_their_group() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let records = [Record::Vote, Record::Committed, Record::Group, Record::Extra(0), Record::Extra(255)];
    for number in [1, 2, u32::MAX] {
        for record in records {
            assert_eq!(opened.group(number).get_record(record).unwrap(), None);
            let value = format!("{number} {record:?}");
            opened.group(number).put_record(record, value.as_bytes(), Some(ignore())).unwrap();
        }
    }
    opened.group(2).put_record(Record::Vote, b"", None).unwrap();
    opened.group(1).destroy().unwrap();
    for record in records {
        assert_eq!(opened.group(1).get_record(record).unwrap(), None);
        assert_eq!(opened.group(u32::MAX).get_record(record).unwrap().unwrap(), format!("{} {record:?}", u32::MAX));
    }
    assert_eq!(opened.group(2).get_record(Record::Vote).unwrap().unwrap(), "");
    assert_eq!(opened.group(2).get_record(Record::Group).unwrap().unwrap(), "2 Group");
}

#[test]
fn a_destroyed_group_can_begin_again() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let group = opened.group(9);
    append(&group, 0..=500);
    group.purge(200, b"m").unwrap();
    let mut writer = group.begin_snapshot().unwrap();
    writer.push(b"piece").unwrap();
    writer.publish(b"manifest", ignore()).unwrap();
    group.destroy().unwrap();
    assert_eq!((group.last().unwrap(), group.purged().unwrap()), (None, None));
    assert!(group.snapshot().unwrap().is_none());
    append(&group, 0..=1);
    opened.sync();
    drop((opened, group));
    let opened = Opened::at(dir.path());
    assert_eq!(indices(&opened.group(9), 0, 1000), [0, 1]);
}

#[test]
#[should_panic(expected = "purge record")]
fn the_purge_record_is_not_written_alone() {
    let dir = tempfile::tempdir().unwrap();
    let _written = Opened::at(dir.path()).group(1).put_record(Record::Purged, b"", None);
}
