//! RocksDB under everything: the shared log, one syncer, snapshots, identity
