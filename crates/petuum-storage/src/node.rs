//! Records of the node itself: the store's format, identity, boots, peers (P21). What they say is the server's.

use crate::engine::Engine;
use crate::keys::{self, Family};
use crate::{Error, NodeRecord, Store, SyncDone};
use bytes::Bytes;
use petuum_types::{NodeId, codec};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// The format of everything `keys` draws.
pub(crate) const FORMAT: u32 = 1;

/// One start of a node (P21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Boot {
    /// How many times this directory was started, from 1.
    pub number: u64,
    /// Drawn at this start: two copies of one directory, started as often, differ in it.
    pub nonce: u64,
    /// Drawn at the first start and kept: a directory that was emptied since differs in it, however often it was started.
    pub life: u64,
}

/// Refuses what this version cannot read; marks a new store. Durable at return.
pub(crate) fn check_format(engine: &Engine) -> Result<(), Error> {
    let refused = |found: String| Error::Format { dir: engine.dir.clone(), found, supported: FORMAT };
    if let Some(record) = engine.get(Family::Meta, &keys::FORMAT_KEY)? {
        let found: u32 = codec::decode(&record).map_err(|error| refused(error.to_string()))?;
        return if found == FORMAT { Ok(()) } else { Err(refused(format!("storage format {found}"))) };
    }
    for family in Family::ALL {
        if engine.last_key(family, (&[], &[0xff; 17]))?.is_some() {
            return Err(refused(format!("records in `{}` but no storage format", family.name())));
        }
    }
    engine.write_durably(|batch| {
        batch.put(Family::Meta, &keys::FORMAT_KEY, &codec::encode(&FORMAT));
        Ok(())
    })?;
    // So that a store that has lost its logs is never taken for a new one.
    engine.begin_flush(Family::Meta)
}

impl Store {
    /// What names this directory, if it was ever set.
    ///
    /// # Errors
    /// If the store failed.
    pub fn identity(&self) -> Result<Option<Bytes>, Error> {
        self.node_record(NodeRecord::Identity)
    }

    /// Sets what names this directory. `done` is called after the next sync.
    ///
    /// # Errors
    /// If the store failed; `done` has then been called with the error.
    pub fn set_identity(&self, identity: &[u8], done: SyncDone) -> Result<(), Error> {
        self.set_node_record(NodeRecord::Identity, identity, Some(done))
    }

    /// What is remembered of a peer.
    ///
    /// # Errors
    /// If the store failed.
    pub fn peer_record(&self, peer: NodeId) -> Result<Option<Bytes>, Error> {
        self.node_record(NodeRecord::Peer(peer))
    }

    /// Remembers something of a peer. `done` is called after the next sync.
    ///
    /// # Errors
    /// If the store failed; `done` has then been called with the error.
    pub fn set_peer_record(&self, peer: NodeId, record: &[u8], done: SyncDone) -> Result<(), Error> {
        self.set_node_record(NodeRecord::Peer(peer), record, Some(done))
    }

    /// What is remembered of every peer, by node id.
    ///
    /// # Errors
    /// If the store failed.
    pub fn peer_records(&self) -> Result<Vec<(NodeId, Bytes)>, Error> {
        let mut records = Vec::new();
        let (from, end) = keys::peers();
        self.engine().scan(Family::Meta, (&from, &end), |key, record| {
            let peer = keys::peer(key).ok_or_else(|| Error::Damaged {
                dir: self.engine().dir.clone(),
                group: None,
                what: "a record about a peer".to_owned(),
                reason: format!("a key of {} bytes", key.len()),
            })?;
            records.push((peer, Bytes::copy_from_slice(record)));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(records)
    }

    /// A record of the node, if it was ever written.
    ///
    /// # Errors
    /// If the store failed.
    pub fn node_record(&self, record: NodeRecord) -> Result<Option<Bytes>, Error> {
        self.engine().get(Family::Meta, &keys::node_record(record))
    }

    /// Writes a record of the node, readable at return. `done` is called after the next sync.
    ///
    /// # Errors
    /// If the store failed; `done` has then been called with the error.
    pub fn set_node_record(&self, record: NodeRecord, bytes: &[u8], done: Option<SyncDone>) -> Result<(), Error> {
        let outcome = self.engine().write(|batch| {
            batch.put(Family::Meta, &keys::node_record(record), bytes);
            Ok(())
        });
        self.engine().queue.finish(outcome, done)
    }

    /// The last start, if there was one.
    ///
    /// # Errors
    /// If the store failed or the record is damaged.
    pub fn last_boot(&self) -> Result<Option<Boot>, Error> {
        let Some(record) = self.engine().get(Family::Meta, &keys::BOOT_KEY)? else { return Ok(None) };
        codec::decode(&record).map(Some).map_err(|error| Error::Damaged {
            dir: self.engine().dir.clone(),
            group: None,
            what: "the boot record".to_owned(),
            reason: error.to_string(),
        })
    }

    /// Counts this start. Durable at return, without the syncer; one caller, once per start.
    ///
    /// # Errors
    /// If the store failed or the record is damaged.
    pub fn next_boot(&self, nonce: u64) -> Result<Boot, Error> {
        let boot = match self.last_boot()? {
            Some(last) => Boot { number: last.number.saturating_add(1), nonce, life: last.life },
            None => Boot { number: 1, nonce, life: nonce },
        };
        let outcome = self.engine().write_durably(|batch| {
            batch.put(Family::Meta, &keys::BOOT_KEY, &codec::encode(&boot));
            Ok(())
        });
        self.engine().queue.finish(outcome, None)?;
        Ok(boot)
    }
}
