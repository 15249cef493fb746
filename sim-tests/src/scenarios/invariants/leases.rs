//! P16: a removal for want of heartbeats comes no sooner than a lease after the last that was answered, whoever led
//! meanwhile; and never strikes a successor, whose registration began its own lease.

use std::time::Duration;

/// # Errors
/// If a worker whose lease was renewed at `renewed` is removed at `now`.
pub(in crate::scenarios) fn kept(
    worker: u32,
    lease: Duration,
    renewed: Option<Duration>,
    now: Duration,
) -> Result<(), String> {
    match renewed.map(|renewed| now.saturating_sub(renewed)) {
        Some(held) if held < lease => {
            Err(format!("P16: worker {worker} lost its lease of {lease:?}, {held:?} after it was renewed"))
        }
        _ => Ok(()),
    }
}
