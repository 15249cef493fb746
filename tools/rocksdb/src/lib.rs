//! Nothing but a reason to build `librocksdb-sys`.
