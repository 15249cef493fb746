//! The one place that maps errors to gRPC statuses and back.

use crate::wire;
use petuum_types::{Error, ErrorKind, NodeId};
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

const DETAIL: &str = "petuum-error-bin";

/// The gRPC code a client in any language expects for a kind.
#[must_use]
pub const fn code(kind: ErrorKind) -> Code {
    match kind {
        ErrorKind::InvalidArgument => Code::InvalidArgument,
        ErrorKind::NotFound => Code::NotFound,
        ErrorKind::AlreadyExists => Code::AlreadyExists,
        ErrorKind::Replaced
        | ErrorKind::Evicted
        | ErrorKind::OldGeneration
        | ErrorKind::Incompatible
        | ErrorKind::NotInitialized
        | ErrorKind::FailedPrecondition => Code::FailedPrecondition,
        ErrorKind::DeadlineExceeded => Code::DeadlineExceeded,
        ErrorKind::Unavailable => Code::Unavailable,
        ErrorKind::ResourceExhausted => Code::ResourceExhausted,
        ErrorKind::Storage => Code::DataLoss,
        ErrorKind::Internal => Code::Internal,
    }
}

/// Who leads instead of the node that answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderHint {
    /// The leader.
    pub node: NodeId,
    /// Its address.
    pub address: String,
}

/// The status of an error.
#[must_use]
pub fn to_status(error: &Error) -> Status {
    with_leader(error, None)
}

/// The status of an error, naming the leader.
#[must_use]
pub fn with_leader(error: &Error, leader: Option<LeaderHint>) -> Status {
    let mut status = Status::new(code(error.kind()), error.message());
    let (node, address) = leader.map_or((0, String::new()), |hint| (hint.node.0, hint.address));
    let detail = wire::ErrorDetail {
        kind: error.kind() as u32,
        outcome_unknown: error.outcome_unknown(),
        leader: node,
        leader_address: address,
    };
    status.metadata_mut().insert_bin(DETAIL, MetadataValue::from_bytes(&detail.encode_to_vec()));
    status
}

fn detail(status: &Status) -> Option<wire::ErrorDetail> {
    let bytes = status.metadata().get_bin(DETAIL)?.to_bytes().ok()?;
    wire::ErrorDetail::decode(bytes).ok()
}

/// The leader a status names.
#[must_use]
pub fn leader_hint(status: &Status) -> Option<LeaderHint> {
    let detail = detail(status)?;
    (detail.leader != 0).then_some(LeaderHint { node: NodeId(detail.leader), address: detail.leader_address })
}

/// The error of a status. One that did not come from a Petuum server (a broken connection, a proxy) is judged by its
/// code, and its outcome is unknown.
#[must_use]
pub fn from_status(status: &Status) -> Error {
    if let Some(detail) = detail(status)
        && let Some(kind) = ErrorKind::from_number(detail.kind)
    {
        let error = Error::new(kind, status.message());
        return if detail.outcome_unknown { error.with_unknown_outcome() } else { error };
    }
    let kind = match status.code() {
        Code::InvalidArgument | Code::OutOfRange => ErrorKind::InvalidArgument,
        Code::NotFound => ErrorKind::NotFound,
        Code::AlreadyExists => ErrorKind::AlreadyExists,
        Code::DeadlineExceeded => ErrorKind::DeadlineExceeded,
        Code::ResourceExhausted => ErrorKind::ResourceExhausted,
        Code::Unimplemented => ErrorKind::Incompatible,
        Code::FailedPrecondition => ErrorKind::FailedPrecondition,
        Code::DataLoss => ErrorKind::Storage,
        // Cancelled, Unknown, Unavailable, Aborted and Internal come from transports when connections break.
        _ => ErrorKind::Unavailable,
    };
    Error::new(kind, status.message()).with_unknown_outcome()
}

/// Refuses a request of another protocol version, naming both.
///
/// # Errors
/// [`ErrorKind::Incompatible`] as a status.
pub fn check_format(format: u32) -> Result<(), Box<Status>> {
    if format == crate::FORMAT {
        return Ok(());
    }
    let message = format!(
        "the client speaks protocol version {format}, this server version {}: use client and server of one release",
        crate::FORMAT
    );
    Err(Box::new(to_status(&Error::new(ErrorKind::Incompatible, message))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_survives_the_wire() {
        for kind in ErrorKind::ALL {
            let error = Error::new(kind, "what").with_unknown_outcome();
            let hint = LeaderHint { node: NodeId(3), address: "127.0.0.1:9".into() };
            let status = with_leader(&error, Some(hint.clone()));
            assert_eq!(from_status(&status), error);
            assert_eq!(leader_hint(&status), Some(hint));
        }
    }

    #[test]
    fn a_strangers_status_is_judged_by_its_code() {
        let error = from_status(&Status::unavailable("connection reset"));
        assert!(error.is_retryable() && error.outcome_unknown());
        assert_eq!(from_status(&Status::unimplemented("no such method")).kind(), ErrorKind::Incompatible);
    }

    #[test]
    fn other_versions_are_named() {
        let status = check_format(7).unwrap_err();
        assert_eq!(status.code(), Code::FailedPrecondition);
        assert!(status.message().contains("version 7") && status.message().contains("version 1"));
    }
}
