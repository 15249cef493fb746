//! What `ctl` lists are made of: text in columns, and what a node says of its replicas.

use crate::output::Failure;
use comfy_table::{Table, presets};
use petuum_net::transport::{ChannelSettings, Connector, Tcp, channel};
use petuum_net::wire;
use petuum_net::wire::admin_client::AdminClient;
use std::sync::Arc;
use std::time::Duration;

/// A table of text with these headings.
pub(crate) fn rows(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header.to_vec());
    table
}

/// What one node says, or why it says nothing.
pub(crate) async fn replicas(address: &str) -> Result<Vec<wire::Replica>, Failure> {
    let connector: Arc<dyn Connector> = Arc::new(Tcp);
    let channel = channel(&connector, address, ChannelSettings::default()).map_err(Failure::new)?;
    let request = wire::GetReplicasRequest { format: petuum_net::FORMAT };
    let mut client = AdminClient::new(channel);
    match tokio::time::timeout(Duration::from_secs(3), client.get_replicas(request)).await {
        Ok(Ok(answer)) => Ok(answer.into_inner().replicas),
        Ok(Err(status)) => Err(petuum_net::status::from_status(&status).into()),
        Err(_) => Err(Failure::new("no answer within 3 s")),
    }
}
