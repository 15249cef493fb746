//! Opening: locks, formats, identity, boots, free space.

use super::{Opened, append, ignore, small};
use crate::keys::{self, Family};
use crate::{Error, NodeRecord, Store, StoreOptions};
use petuum_types::{GroupId, NodeId, codec};
use std::io;
use std::path::Path;
use std::sync::Arc;

fn refused(dir: &Path) -> Error {
    Store::open(dir, small()).err().expect("it must not open")
}

#[test]
fn a_directory_in_use_is_named_with_its_lock() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let error = refused(dir.path());
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().contains(&format!("{}/STORE-LOCK", dir.path().display())), "{error}");
    drop(opened);
    drop(Opened::at(dir.path()));
}

#[test]
fn a_newer_format_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    let newer = crate::node::FORMAT + 1;
    let put = |value: &[u8]| {
        let written = opened.store.engine().write_durably(|batch| {
            batch.put(Family::Meta, &keys::FORMAT_KEY, value);
            Ok(())
        });
        written.unwrap();
    };
    put(&codec::encode(&newer));
    drop(opened);
    let error = refused(dir.path()).to_string();
    assert!(error.contains(&format!("storage format {newer}; this version reads storage format 1")), "{error}");
}

#[test]
fn a_database_of_another_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = rocksdb::Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    drop(rocksdb::DB::open_cf(&options, dir.path(), ["log", "theirs"]).unwrap());
    let error = refused(dir.path());
    assert!(matches!(&error, Error::Format { found, .. } if found.contains("`theirs`")), "{error}");

    let dir = tempfile::tempdir().unwrap();
    let database = rocksdb::DB::open_cf(&options, dir.path(), ["log"]).unwrap();
    database.put_cf(database.cf_handle("log").unwrap(), b"key", b"value").unwrap();
    drop(database);
    let error = refused(dir.path());
    assert!(matches!(&error, Error::Format { found, .. } if found.contains("records in `log`")), "{error}");
}

#[test]
fn a_file_in_the_way_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    assert!(matches!(refused(&file), Error::Io { doing: "create the data directory", .. }));
    assert!(matches!(refused(&file.join("below")), Error::Io { .. }));
    drop(Opened::at(&dir.path().join("made/with/its/parents")));
}

#[test]
fn identity_and_peers_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    assert_eq!(opened.store.identity().unwrap(), None);
    opened.store.set_identity(b"cluster 1 node 2", ignore()).unwrap();
    for peer in [1, 300, u64::MAX] {
        opened.store.set_peer_record(NodeId(peer), &peer.to_be_bytes(), ignore()).unwrap();
    }
    opened.store.set_node_record(NodeRecord::Extra(0), b"extra", None).unwrap();
    assert_eq!(opened.sync(), 4);
    drop(opened);
    let store = Opened::at(dir.path()).store;
    assert_eq!(store.identity().unwrap().unwrap(), "cluster 1 node 2");
    assert_eq!(store.peer_record(NodeId(2)).unwrap(), None);
    assert_eq!(store.peer_record(NodeId(300)).unwrap().unwrap()[..], 300u64.to_be_bytes());
    let all = store.peer_records().unwrap();
    assert_eq!(all.iter().map(|(peer, _)| peer.0).collect::<Vec<_>>(), [1, 300, u64::MAX]);
    assert_eq!(store.node_record(NodeRecord::Extra(0)).unwrap().unwrap(), "extra");
}

#[test]
fn boots_are_counted_and_durable_without_a_sync() {
    let dir = tempfile::tempdir().unwrap();
    for number in 1..=3 {
        let store = Store::open(dir.path(), small()).unwrap();
        assert_eq!(store.last_boot().unwrap().map_or(0, |boot| boot.number), number - 1);
        let boot = store.next_boot(number * 11).unwrap();
        assert_eq!(boot, crate::Boot { number, nonce: number * 11, life: 11 });
        assert_eq!(store.last_boot().unwrap(), Some(boot));
    }
}

#[test]
fn free_space_is_asked_for_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let opened = Opened::at(dir.path());
    assert!(opened.store.free_bytes().unwrap() > 0);
    drop(opened);
    let expected = dir.path().to_owned();
    let free_bytes: crate::FreeBytes = Arc::new(move |asked| {
        assert_eq!(asked, expected);
        Err(io::Error::other("unknown"))
    });
    let store = Store::open(dir.path(), StoreOptions { free_bytes, ..small() }).unwrap();
    assert!(matches!(store.free_bytes(), Err(Error::Io { .. })));
    assert!(store.poisoned().is_none());
}

/// A disk in memory whose logs nobody else can read: as far as the store sees, there is an empty one.
struct Unseen;

impl crate::LogFiles for Unseen {
    fn list(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(vec!["000001.log".to_owned()])
    }

    fn open(&self, _: &Path, _: &str) -> io::Result<Box<dyn io::Read>> {
        Ok(Box::new(io::empty()))
    }

    fn create(&self, _: &Path, _: &str, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn sync(&self, _: &Path, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _: &Path, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn overwrite(&self, _: &Path, _: &str, _: u64, _: u8) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn cut(&self, _: &Path, _: &str, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[test]
fn it_works_on_a_disk_of_ones_own() {
    let env = crate::Env::mem_env().unwrap();
    let real = tempfile::tempdir().unwrap();
    let dir = real.path();
    let store = Store::open(dir, StoreOptions::simulated(env.clone(), Arc::new(Unseen))).unwrap();
    append(&store.group(GroupId(1)), 0..=9);
    // RocksDB's disk in memory has no sync of a whole WAL; this write syncs itself.
    store.next_boot(1).unwrap();
    drop(store);
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0, "nothing on the real one");
    let store = Store::open(dir, StoreOptions::simulated(env, Arc::new(Unseen))).unwrap();
    assert_eq!(store.group(GroupId(1)).last().unwrap().unwrap().0, 9);
}

/// As a node does at each start: little is written, much of it purged, and the store closed in good order.
#[test]
fn a_store_opens_again_and_again() {
    let dir = tempfile::tempdir().unwrap();
    for life in 0..4u64 {
        let store = Store::open(dir.path(), StoreOptions::default()).unwrap();
        let sync = store.spawn_sync_thread();
        let group = store.group(GroupId(1));
        let purged = group.purged().unwrap().map(|(upto, _)| upto);
        assert_eq!(purged, (life * 10).checked_sub(1), "life {life}");
        assert_eq!(group.last().unwrap(), None, "life {life}");
        for index in life * 10..life * 10 + 10 {
            let (told, done) = std::sync::mpsc::channel();
            group.append([(index, vec![7; 10])], Box::new(move |outcome| told.send(outcome).unwrap())).unwrap();
            done.recv().unwrap().unwrap();
        }
        group.purge(life * 10 + 9, b"marker").unwrap();
        drop(group);
        store.close();
        drop(store);
        sync.join().unwrap();
    }
}

#[test]
fn golden_bytes_of_a_boot() {
    let bytes = codec::encode(&crate::Boot { number: 3, nonce: 300, life: 77 });
    assert_eq!(bytes.iter().map(|b| format!("{b:02x}")).collect::<String>(), "0103fb2c014d");
}
