//! Learning programs and data loaders on the public client
