//! What deciding a call gives: an answer, or a typed refusal that changes nothing.

use crate::command::ControlAnswer;
use crate::limits::MESSAGE_BYTES_MAX;
use petuum_types::ErrorKind;

/// Why a call is refused: what the caller should do, and the particulars.
pub(crate) type Refusal = (ErrorKind, String);

/// What deciding a call gives: its answer, or why not.
pub(crate) type Decision = Result<ControlAnswer, Refusal>;

pub(crate) fn refuse<T>(kind: ErrorKind, message: impl Into<String>) -> Result<T, Refusal> {
    let mut message: String = message.into();
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
    Err((kind, message))
}
