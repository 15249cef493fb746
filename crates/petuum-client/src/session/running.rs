//! What a session's handles keep alive.

use super::core::Core;
use std::sync::Arc;
use tokio::task::JoinSet;

/// What the user's handles keep alive together; tasks hold only the core.
pub(crate) struct Running {
    pub(super) core: Arc<Core>,
    /// Aborted when the last handle goes.
    pub(super) _tasks: JoinSet<()>,
}
