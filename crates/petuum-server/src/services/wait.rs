//! Waiting for the control group's state, for at most as long as a caller asked.

use crate::groups::ControlReplica;
use crate::shared::Inner;
use petuum_control::{Control, ControlAnswer, ControlCommand};
use petuum_net::status::{LeaderHint, with_leader};
use petuum_types::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// The longest a call is held; clients ask again with the same request id.
const HELD_MAX: Duration = Duration::from_secs(60);

/// The control group's replica on this node, if it leads; otherwise a refusal that names who does.
pub(super) fn leading(inner: &Arc<Inner>) -> Result<&ControlReplica, Box<Status>> {
    let running = inner.running().map_err(|e| Box::new(with_leader(&e, None)))?;
    let status = running.control.as_ref().map(|c| (c, c.group.status()));
    match status {
        Some((control, status)) if status.is_leader() => Ok(control),
        Some((_, status)) => {
            let hint = status.leader.and_then(|node| {
                let address = running.identity.map.nodes.get(&node)?.clone();
                Some(LeaderHint { node, address })
            });
            let error = Error::new(ErrorKind::Unavailable, "this node does not lead the control group");
            Err(Box::new(with_leader(&error, hint)))
        }
        None => {
            let members = petuum_control::control_members(&running.identity.map.nodes);
            let hint = members.first().and_then(|node| {
                let address = running.identity.map.nodes.get(node)?.clone();
                Some(LeaderHint { node: *node, address })
            });
            let error = Error::new(ErrorKind::Unavailable, "this node is no member of the control group");
            Err(Box::new(with_leader(&error, hint)))
        }
    }
}

/// The same, for calls that are answered from its state: that state holds every change answered before this call.
///
/// A leader that has just been elected may lag behind its own log: it would deny a job that exists, or, in a cluster
/// formed a moment ago, the cluster.
pub(super) async fn leading_now(inner: &Arc<Inner>) -> Result<&ControlReplica, Box<Status>> {
    let control = leading(inner)?;
    let unavailable = |message: String| Box::new(with_leader(&Error::new(ErrorKind::Unavailable, message), None));
    match tokio::time::timeout(inner.settings.peer_call(), control.group.read_index()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => return Err(unavailable(error.to_string())),
        Err(_) => return Err(unavailable("the control group's leader does not reach its peers".to_owned())),
    }
    if control.cell.with(|state| state.cluster().is_none()) {
        return Err(unavailable("the cluster is being formed; try again".to_owned()));
    }
    Ok(control)
}

/// Logs a command and wakes the driver for what follows from it.
pub(super) async fn log(
    inner: &Arc<Inner>,
    control: &ControlReplica,
    command: &ControlCommand,
) -> Result<ControlAnswer, Error> {
    let answer = crate::driver::propose(control, command).await?.into_result()?;
    inner.driver_wake.notify_one();
    Ok(answer)
}

/// Looks at the state after each change until `look` has an answer, for at most `wait_ms` (0: the longest).
/// `waiting_for` says what is missing when the time is over.
pub(super) async fn until<T>(
    control: &ControlReplica,
    wait_ms: u32,
    mut look: impl FnMut(&Control) -> Option<Result<T, Error>>,
    waiting_for: impl Fn(&Control) -> String,
) -> Result<T, Error> {
    let wait = if wait_ms == 0 { HELD_MAX } else { HELD_MAX.min(Duration::from_millis(u64::from(wait_ms))) };
    let mut changes = control.cell.changes();
    // A handle of its own: it remembers what this call saw.
    let group = control.group.clone();
    let watching = async {
        loop {
            changes.borrow_and_update();
            if let Some(found) = control.cell.with(&mut look) {
                return found;
            }
            if !group.status().is_leader() {
                let message = "this node stopped leading the control group; ask its successor with the same request id";
                return Err(Error::new(ErrorKind::Unavailable, message).with_unknown_outcome());
            }
            tokio::select! {
                biased;
                _ = changes.changed() => {}
                () = group.changed() => {}
            }
        }
    };
    match tokio::time::timeout(wait, watching).await {
        Ok(found) => found,
        Err(_) => {
            let waiting_for = control.cell.with(waiting_for);
            Err(Error::new(ErrorKind::DeadlineExceeded, format!("still waiting for {waiting_for} after {wait:?}")))
        }
    }
}
