//! P16, P17: a removal for want of heartbeats comes no sooner than a lease after the last that was answered, whoever led
//! meanwhile, and never strikes a successor: a registration begins a lease of its own.

use std::collections::BTreeMap;
use std::time::Duration;

/// When processes registered.
#[derive(Default)]
pub(in crate::scenarios) struct Leases {
    /// By worker and incarnation: since when any replica has applied the registration.
    registered: BTreeMap<(u32, u64), Duration>,
}

impl Leases {
    /// A replica of the control group shows that `incarnation` was given to a process of this worker.
    pub(in crate::scenarios) fn registered(&mut self, worker: u32, incarnation: u64, now: Duration) {
        self.registered.entry((worker, incarnation)).or_insert(now);
    }

    /// A worker is removed for want of heartbeats, which is seen now; `removal` is the worker and the version of its removal,
    /// which is above the incarnation that was removed, and `renewed` is when that one surely still had a whole lease. The
    /// next may have registered before anybody has seen it.
    ///
    /// # Errors
    /// If its lease, or that of the latest registration before the removal, was not over.
    pub(in crate::scenarios) fn expired(
        &self,
        removal: (u32, u64),
        lease: Duration,
        renewed: Option<Duration>,
        now: Duration,
    ) -> Result<(), String> {
        let worker = removal.0;
        let registered = self.registered.range((worker, 0)..removal).next_back().map(|(_, at)| *at);
        let begun = [("it was renewed", renewed), ("it registered", registered)];
        for (what, at) in begun {
            let held = at.map(|at| now.saturating_sub(at)).filter(|held| *held < lease);
            if let Some(held) = held {
                return Err(format!("P16: worker {worker} lost its lease of {lease:?}, {held:?} after {what}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(3);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_lease_counts_from_the_last_heartbeat_and_from_the_last_registration() {
        let mut leases = Leases::default();
        leases.registered(0, 1, at(1));
        assert!(leases.expired((0, 2), LEASE, Some(at(2)), at(4)).unwrap_err().contains("renewed"));
        assert_eq!(leases.expired((0, 2), LEASE, Some(at(2)), at(5)), Ok(()));
        leases.registered(0, 3, at(4));
        assert!(leases.expired((0, 4), LEASE, Some(at(2)), at(5)).unwrap_err().contains("registered"));
        // A replica that lags shows an older one, or a removal that the next registration followed.
        leases.registered(0, 1, at(5));
        assert_eq!(leases.expired((0, 4), LEASE, Some(at(2)), at(7)), Ok(()));
        assert_eq!(leases.expired((0, 2), LEASE, Some(at(2)), at(5)), Ok(()));
        assert_eq!(leases.expired((1, 9), LEASE, None, at(7)), Ok(()));
    }
}
