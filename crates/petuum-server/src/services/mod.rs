//! The gRPC services: thin translations between the wire and the cells, groups and formation.

mod admin;
mod admin_replicas;
mod admin_workers;
mod data;
mod peer;
mod read;
mod session;
mod wait;

use crate::shared::Inner;
use petuum_net::transport::{CONNECTION_WINDOW_BYTES, FRAME_BYTES, STREAM_WINDOW_BYTES};
use petuum_net::wire;
use petuum_net::wire::admin_server::AdminServer;
use petuum_net::wire::data_server::DataServer;
use petuum_net::wire::peer_server::PeerServer;
use petuum_net::wire::session_server::SessionServer;
use petuum_types::limits;
use std::sync::Arc;
use std::time::Duration;
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic_health::ServingStatus;

/// Everything a node serves on its port.
pub(crate) fn router(inner: &Arc<Inner>) -> Router {
    let shared = || inner.clone();
    let reflection = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(wire::PUBLIC_DESCRIPTORS)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        .build_v1()
        .expect("the descriptors were built with the program");
    let (health, health_service) = tonic_health::server::health_reporter();
    inner.set_health(health);
    let peer_bytes = limits::MESSAGE_BYTES_MAX + 65_536;
    Server::builder()
        .http2_keepalive_interval(Some(Duration::from_secs(5)))
        .http2_keepalive_timeout(Some(Duration::from_secs(5)))
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .max_concurrent_streams(4096)
        .http2_max_header_list_size(64 * 1024)
        .http2_max_pending_accept_reset_streams(Some(128))
        .add_service(health_service)
        .add_service(reflection)
        .add_service(DataServer::new(data::Service(shared())).max_decoding_message_size(limits::MESSAGE_BYTES_MAX))
        .add_service(SessionServer::new(session::Service(shared())).max_decoding_message_size(1024 * 1024))
        .add_service(AdminServer::new(admin::Service(shared())).max_decoding_message_size(1024 * 1024))
        .add_service(PeerServer::new(peer::Service(shared())).max_decoding_message_size(peer_bytes))
}

/// Tells health checkers whether the node takes part.
pub(crate) async fn announce(inner: &Inner, status: ServingStatus) {
    let Some(health) = inner.health() else { return };
    for service in ["", "petuum.v1.Data", "petuum.v1.Session", "petuum.v1.Admin"] {
        health.set_service_status(service, status).await;
    }
}
