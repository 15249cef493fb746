//! Calls from this node to others, over one channel per peer.

use petuum_net::transport::{ChannelSettings, Connector, channel};
use petuum_net::wire::admin_client::AdminClient;
use petuum_net::wire::peer_client::PeerClient;
use petuum_types::{Error, ErrorKind, limits};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tonic::transport::Channel;

/// The channels of a node's own calls (hello, adopt, propose); Raft has its own.
pub(crate) struct Peers {
    connector: Arc<dyn Connector>,
    channels: Mutex<BTreeMap<String, Channel>>,
}

impl Peers {
    pub(crate) fn new(connector: Arc<dyn Connector>) -> Self {
        Self { connector, channels: Mutex::new(BTreeMap::new()) }
    }

    fn channel(&self, address: &str) -> Result<Channel, Error> {
        let mut channels = self.channels.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let opened = channel(&self.connector, address, ChannelSettings::default())
            .map_err(|e| Error::new(ErrorKind::InvalidArgument, e))?;
        channels.insert(address.to_owned(), opened.clone());
        Ok(opened)
    }

    /// The peers' service of another node.
    pub(crate) fn peer(&self, address: &str) -> Result<PeerClient<Channel>, Error> {
        let client = PeerClient::new(self.channel(address)?);
        Ok(client.max_decoding_message_size(limits::MESSAGE_BYTES_MAX))
    }

    /// The operators' service of another node.
    pub(crate) fn admin(&self, address: &str) -> Result<AdminClient<Channel>, Error> {
        Ok(AdminClient::new(self.channel(address)?))
    }
}
