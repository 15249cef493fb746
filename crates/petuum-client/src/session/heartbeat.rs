//! Keeps the worker's lease, and hears when the worker has been replaced or removed.

use super::core::Core;
use petuum_net::wire;
use petuum_net::wire::session_client::SessionClient;
use petuum_types::ErrorKind;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Beats five times per lease, for as long as the session lives; aborted with it.
pub(super) async fn run(core: Arc<Core>) {
    let registration = core.registration;
    let request = wire::HeartbeatRequest {
        format: petuum_net::FORMAT,
        job: core.job.0,
        worker: registration.worker.0,
        incarnation: registration.incarnation.0,
    };
    let period = (registration.lease / 5).clamp(Duration::from_millis(20), Duration::from_secs(10));
    loop {
        tokio::time::sleep(period).await;
        let begun = Instant::now();
        // A silent node is left soon enough for the others to be asked within the lease.
        let call = |channel, _| async move { SessionClient::new(channel).heartbeat(request).await };
        match core.cluster.control_within(period.max(Duration::from_millis(100)), call).await {
            Ok(_) => core.lock().renewed = begun,
            Err(error)
                if matches!(error.kind(), ErrorKind::Replaced | ErrorKind::Evicted | ErrorKind::Incompatible) =>
            {
                core.end(error);
                return;
            }
            // The control group is away: commits and reads go on without it, and so does this.
            Err(error) => tracing::warn!(worker = %registration.worker, %error, "no heartbeat came through"),
        }
    }
}
