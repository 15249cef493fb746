//! How nodes become a cluster, and how a node proves that it is not an old copy of itself (P21).
//!
//! *Init*: one node draws the cluster's id, writes its own identity, and adopts the others. An empty node waits until
//! it is adopted. Both are idempotent: a call that was cut short is made again.
//! *Hello*: at each start a node counts its boot number up, durably, and shows it to its peers with a nonce and the term
//! of each group before it starts any group. A peer that remembers a higher boot, another nonce of the same boot or a
//! higher term refuses: an old copy of the data directory was put back. What this cannot catch: a majority put back
//! together, and a copy put back while every peer that remembers a later boot is down but a majority answers. A node shows
//! its boot to every peer, also after it has started, so that as many as possible remember.

mod boot;
mod hello;
mod init;

pub(crate) use hello::{answer as answer_hello, introduce};
pub(crate) use init::{adopt, init};
