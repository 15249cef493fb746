//! Runs with fixed seeds: each found a bug once, or stands for a public report. Their order of events changes with the code,
//! so each says which figures must not be 0; what they show is shown for good by the test named beside.

use super::report::Report;
use super::run::Scenario;

/// One of them.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) scenario: Scenario,
    pub(super) seed: u64,
    /// What it found, or what was reported.
    pub(super) about: &'static str,
    /// Figures that must not be 0, or the run shows nothing of it.
    needs: &'static [&'static str],
}

impl Named {
    /// The first figure that is 0.
    pub(super) fn missing(&self, report: &Report) -> Option<&'static str> {
        self.needs.iter().copied().find(|name| report.get(name) == 0)
    }
}

/// All, in the order in which they were found.
pub(super) const ALL: &[Named] = &[
    Named {
        name: "job-made-right-after-forming",
        scenario: Scenario::First,
        seed: 42,
        about: "a job created right after the cluster was formed was refused for good; `petuum-sim`, test \
                `a_cluster_formed_a_moment_ago_makes_a_job`",
        needs: &["clocks-acknowledged"],
    },
    Named {
        name: "torn-tail-read-for-ever",
        scenario: Scenario::First,
        seed: 308,
        about: "after a power loss RocksDB read a torn record for ever; `petuum-storage`, test \
                `a_tail_with_the_type_of_recycled_logs_is_cut_off`",
        needs: &["bytes-lost"],
    },
    Named {
        name: "snapshots-to-followers-behind",
        scenario: Scenario::Swarm,
        seed: 13,
        about: "a leader purged past what a follower needed, again and again (openraft 2116, 1706)",
        needs: &["snapshots-installed", "elections"],
    },
    Named {
        name: "removed-and-back-while-the-cluster-was-down",
        scenario: Scenario::Swarm,
        seed: 34,
        about: "one node; a worker was removed, joined and removed again before anybody was told: the oracle has to hear \
                of every removal",
        needs: &["clocks-acknowledged", "faults"],
    },
    Named {
        name: "snapshot-acknowledged-before-the-log-it-covers",
        scenario: Scenario::Swarm,
        seed: 41,
        about: "a follower whose disk was stuck was sent a snapshot of entries it had written and not synced; openraft took \
                it for known and answered, the leader counted the entries as stored there, and a power failure took them",
        needs: &["snapshots-installed", "bytes-lost", "disk-stuck"],
    },
    Named {
        name: "reads-while-a-clock-is-refused",
        scenario: Scenario::Swarm,
        seed: 18,
        about: "a read that was under way when a clock was given up showed a row without the worker's own updates; one that \
                waited for that clock waited for ever; `petuum-sim`, test \
                `a_read_that_waits_for_a_clock_ends_when_that_clock_is_given_up`",
        needs: &["clocks-given-up", "rows-read"],
    },
];

/// The one of this name.
pub(super) fn find(name: &str) -> Option<&'static Named> {
    ALL.iter().find(|named| named.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for named in ALL {
            assert_eq!(find(named.name).map(|found| found.seed), Some(named.seed), "{}", named.name);
        }
        assert!(find("none").is_none());
    }

    #[test]
    fn a_run_that_shows_nothing_is_told() {
        let named = find("snapshots-to-followers-behind").unwrap();
        let mut report = Report::default();
        assert_eq!(named.missing(&report), Some("snapshots-installed"));
        report.count("snapshots-installed", 1);
        report.count("elections", 1);
        assert_eq!(named.missing(&report), None);
    }
}
