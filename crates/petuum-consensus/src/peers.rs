//! How a node reaches its peers: two connections to each, shared by all groups, so that a heartbeat or a vote is never
//! behind a tensor.
//!
//! Not here: what is sent. Invariant: a connect that failed is answered only after a pause, so that nobody who tries
//! again at once spins, nor uses up the ports from which a host can connect.

use crate::settings::Settings;
use petuum_net::transport::{self, ChannelSettings, Connector, Io};
use petuum_net::wire::peer_client::PeerClient;
use petuum_types::{ClusterId, GroupId, NodeId, limits};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status};

const CLUSTER: &str = "petuum-cluster";
const FROM: &str = "petuum-from";
const TO: &str = "petuum-to";
const GROUP: &str = "petuum-group";

/// Which of a peer's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// Entries and snapshots.
    Log,
    /// Heartbeats, votes, leader transfers.
    Control,
}

#[derive(Clone)]
struct Channels {
    address: String,
    log: Channel,
    control: Channel,
}

/// A node's connections.
pub(crate) struct Peers {
    connector: Arc<dyn Connector>,
    addresses: BTreeMap<NodeId, String>,
    settings: ChannelSettings,
    open: Mutex<BTreeMap<NodeId, Channels>>,
}

impl Peers {
    pub(crate) fn new(connector: Arc<dyn Connector>, addresses: BTreeMap<NodeId, String>, settings: &Settings) -> Self {
        let connector = Arc::new(Paced { inner: connector, pause: settings.connect_pause });
        let settings = ChannelSettings { connect_timeout: settings.connect_timeout, keep_alive: settings.keep_alive };
        Self { connector, addresses, settings, open: Mutex::default() }
    }

    /// A client of a peer, at its configured address or else at the one its group's log names.
    ///
    /// # Errors
    /// If the address is none.
    pub(crate) fn client(&self, peer: NodeId, named: &str, traffic: Traffic) -> Result<PeerClient<Channel>, String> {
        let address = self.addresses.get(&peer).map_or(named, String::as_str);
        let mut open = self.open.lock().expect("nothing panics while it is held");
        let channels = match open.get(&peer).filter(|known| known.address == address) {
            Some(known) => known.clone(),
            None => {
                let channel = || transport::channel(&self.connector, address, self.settings);
                let new = Channels { address: address.to_owned(), log: channel()?, control: channel()? };
                open.insert(peer, new.clone());
                new
            }
        };
        drop(open);
        let channel = match traffic {
            Traffic::Log => channels.log,
            Traffic::Control => channels.control,
        };
        Ok(PeerClient::new(channel)
            .max_decoding_message_size(limits::MESSAGE_BYTES_MAX)
            .max_encoding_message_size(limits::MESSAGE_BYTES_MAX))
    }
}

/// A connector that answers failures late.
struct Paced {
    inner: Arc<dyn Connector>,
    pause: Duration,
}

impl Connector for Paced {
    fn connect(&self, address: String) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send>> {
        let (connecting, pause) = (self.inner.connect(address), self.pause);
        Box::pin(async move {
            let outcome = connecting.await;
            if outcome.is_err() {
                tokio::time::sleep(pause).await;
            }
            outcome
        })
    }
}

/// Who speaks to whom about what; every request carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Envelope {
    pub(crate) cluster: ClusterId,
    pub(crate) from: NodeId,
    pub(crate) to: NodeId,
    pub(crate) group: GroupId,
}

impl Envelope {
    /// Stamps a request.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        let parts = [
            (CLUSTER, self.cluster.to_string()),
            (FROM, self.from.0.to_string()),
            (TO, self.to.0.to_string()),
            (GROUP, self.group.0.to_string()),
        ];
        for (key, value) in parts {
            let value = MetadataValue::try_from(value).expect("digits are ASCII");
            request.metadata_mut().insert(key, value);
        }
        request
    }

    /// Reads a request's stamp.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` that names what is missing or no number.
    pub(crate) fn read(metadata: &MetadataMap) -> Result<Self, Box<Status>> {
        let text = |key: &'static str| {
            let value = metadata.get(key).and_then(|value| value.to_str().ok());
            value.ok_or_else(|| Box::new(Status::invalid_argument(format!("a request without {key}"))))
        };
        let cluster = text(CLUSTER)?;
        Ok(Self {
            cluster: petuum_net::convert::cluster_id(cluster)
                .map_err(|error| Box::new(petuum_net::status::to_status(&error)))?,
            from: NodeId(number(FROM, text(FROM)?)?),
            to: NodeId(number(TO, text(TO)?)?),
            group: GroupId(number(GROUP, text(GROUP)?)?),
        })
    }
}

fn number<T: FromStr>(key: &str, text: &str) -> Result<T, Box<Status>> {
    text.parse().map_err(|_| Box::new(Status::invalid_argument(format!("{key} is {text:?}; expected a number"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_survives_the_wire_and_a_missing_part_is_named() {
        let envelope = Envelope { cluster: ClusterId(77), from: NodeId(1), to: NodeId(2), group: GroupId(3) };
        let request = envelope.request(());
        assert_eq!(Envelope::read(request.metadata()).unwrap(), envelope);
        for key in [CLUSTER, FROM, TO, GROUP] {
            let mut request = envelope.request(());
            request.metadata_mut().remove(key);
            assert!(Envelope::read(request.metadata()).unwrap_err().message().contains(key));
            request.metadata_mut().insert(key, MetadataValue::from_static("x"));
            assert!(Envelope::read(request.metadata()).unwrap_err().message().contains("\"x\""));
        }
    }
}
