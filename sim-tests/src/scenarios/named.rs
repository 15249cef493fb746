//! Runs with fixed seeds: each found a bug once, or plays a public report. Their order of events changes with the code, so
//! each says which figures must not be 0. What a bug's run shows is shown for good by the test named beside; those that play
//! a report are given what the report tells of.

use super::plan::Drawn;
use super::report::Report;
use super::reports;
use super::run::Scenario;

/// One of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named {
    pub(super) name: &'static str,
    pub(super) scenario: Scenario,
    pub(super) seed: u64,
    /// What it found, or what was reported.
    pub(super) about: &'static str,
    /// Changes what the seed has drawn.
    pub(super) shape: fn(&mut Drawn),
    /// Figures that must not be 0, or the run shows nothing of it.
    pub(super) needs: &'static [&'static str],
    /// Figures that must not be greater.
    pub(super) bounds: &'static [(&'static str, u64)],
}

/// As the seed has it.
const fn as_drawn(_: &mut Drawn) {}

impl Named {
    /// What a run's figures show of it.
    ///
    /// # Errors
    /// The first figure that is 0 or too great.
    pub(super) fn judge(&self, report: &Report) -> Result<(), String> {
        if let Some(name) = self.needs.iter().find(|name| report.get(name) == 0) {
            return Err(format!("it shows nothing: {name} is 0; choose another seed"));
        }
        match self.bounds.iter().find(|(name, most)| report.get(name) > *most) {
            Some((name, most)) => Err(format!("{name} is {}; expected at most {most}", report.get(name))),
            None => Ok(()),
        }
    }
}

/// Those that found a bug.
const FOUND: &[Named] = &[
    Named {
        name: "job-made-right-after-forming",
        scenario: Scenario::First,
        seed: 42,
        about: "a job created right after the cluster was formed was refused for good; `petuum-sim`, test \
                `a_cluster_formed_a_moment_ago_makes_a_job`",
        shape: as_drawn,
        needs: &["clocks-acknowledged"],
        bounds: &[],
    },
    Named {
        name: "torn-tail-read-for-ever",
        scenario: Scenario::First,
        seed: 308,
        about: "after a power loss RocksDB read a torn record for ever; `petuum-storage`, test \
                `a_tail_with_the_type_of_recycled_logs_is_cut_off`",
        shape: as_drawn,
        needs: &["bytes-lost"],
        bounds: &[],
    },
    Named {
        name: "snapshots-to-followers-behind",
        scenario: Scenario::Swarm,
        seed: 13,
        about: "a leader purged past what a follower needed, again and again (openraft 2116, 1706)",
        shape: reports::snapshots_to_followers,
        needs: &["snapshots-installed", "elections"],
        bounds: &[],
    },
    Named {
        name: "removed-and-back-while-the-cluster-was-down",
        scenario: Scenario::Swarm,
        seed: 34,
        about: "one node; a worker was removed, joined and removed again before anybody was told: the oracle has to hear \
                of every removal",
        shape: reports::removed_while_down,
        needs: &["rejoins", "leader-killed", "worker-evicted"],
        bounds: &[],
    },
    Named {
        name: "snapshot-acknowledged-before-the-log-it-covers",
        scenario: Scenario::Swarm,
        seed: 41,
        about: "a follower whose disk was stuck was sent a snapshot of entries it had written and not synced; openraft took \
                it for known and answered, the leader counted the entries as stored there, and a power failure took them",
        shape: reports::snapshots_on_stuck_disks,
        needs: &["snapshots-installed", "bytes-lost", "disk-stuck"],
        bounds: &[],
    },
    Named {
        name: "reads-while-a-clock-is-refused",
        scenario: Scenario::Swarm,
        seed: 18,
        about: "a read that was under way when a clock was given up showed a row without the worker's own updates; one that \
                waited for that clock waited for ever; `petuum-sim`, test \
                `a_read_that_waits_for_a_clock_ends_when_that_clock_is_given_up`",
        shape: reports::refused_clocks,
        needs: &["clocks-given-up", "rows-read"],
        bounds: &[],
    },
    Named {
        name: "header-across-two-blocks",
        scenario: Scenario::Swarm,
        seed: 2,
        about: "after a power loss a whole log was refused as damaged: the header of its last batch lay across two blocks",
        shape: reports::power,
        needs: &["bytes-lost", "torn-logs"],
        bounds: &[],
    },
    Named {
        name: "asked-to-stop-twice",
        scenario: Scenario::Swarm,
        seed: 58,
        about: "a node asked to stop twice kept the second request and stopped when it was started again",
        shape: reports::stops,
        needs: &["node-stopped"],
        bounds: &[],
    },
    Named {
        name: "died-while-it-came-back",
        scenario: Scenario::Swarm,
        seed: 44,
        about: "a worker's process died while it came back, and had joined; its successor takes that session over",
        shape: reports::died_while_back,
        needs: &["rejoins", "worker-killed", "takeovers"],
        bounds: &[],
    },
    Named {
        name: "rows-cached-for-ever",
        scenario: Scenario::Swarm,
        seed: 95,
        about: "each look at a row that stays cached for ever cost more than the one before",
        shape: reports::cached_for_ever,
        needs: &["rows-checked"],
        bounds: &[],
    },
    Named {
        name: "reads-that-wait-for-a-refused-clock",
        scenario: Scenario::Swarm,
        seed: 5,
        about: "under staleness 0 a read waited for the clock that had just been refused and given up, and nobody told it",
        shape: reports::refused_clocks,
        needs: &["clocks-given-up", "rows-read"],
        bounds: &[],
    },
    Named {
        name: "compactions-on-full-disks",
        scenario: Scenario::Swarm,
        seed: 80,
        about: "a compaction that met a full disk scheduled itself again at once, and virtual time stood still",
        shape: reports::full_disks,
        needs: &["disk-full", "disk-errors"],
        bounds: &[],
    },
    Named {
        name: "renewed-while-it-was-removed",
        scenario: Scenario::Swarm,
        seed: 121,
        about: "a worker whose removal was under way was told that its lease was renewed",
        shape: reports::removed_and_back,
        needs: &["rejoins", "worker-outlived"],
        bounds: &[],
    },
    Named {
        name: "group-built-again-from-its-log",
        scenario: Scenario::Swarm,
        seed: 33,
        about: "a group whose disk had failed a read was built again from its log, and the invariants knew it further on",
        shape: reports::failed_reads,
        needs: &["disk-read-error"],
        bounds: &[],
    },
];

/// All.
pub(super) fn all() -> impl Iterator<Item = &'static Named> {
    FOUND.iter().chain(reports::ALL)
}

/// The one of this name.
pub(super) fn find(name: &str) -> Option<&'static Named> {
    all().find(|named| named.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for named in all() {
            assert_eq!(find(named.name).map(|found| found.about), Some(named.about), "{}", named.name);
        }
        assert!(find("none").is_none());
    }

    #[test]
    fn a_run_that_shows_nothing_is_told() {
        let named = find("snapshots-to-followers-behind").unwrap();
        let mut report = Report::default();
        assert!(named.judge(&report).unwrap_err().contains("snapshots-installed is 0"));
        report.count("snapshots-installed", 1);
        report.count("elections", 1);
        assert_eq!(named.judge(&report), Ok(()));
    }

    #[test]
    fn what_must_stay_small_is_looked_at() {
        let named = Named { bounds: &[("elections", 2)], needs: &[], ..FOUND[0] };
        let mut report = Report::default();
        report.count("elections", 2);
        assert_eq!(named.judge(&report), Ok(()));
        report.count("elections", 1);
        assert!(named.judge(&report).unwrap_err().contains("expected at most 2"));
    }
}
