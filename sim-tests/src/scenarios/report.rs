//! What a run has done, in figures, and whether the faults it is for have happened.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use petuum_client::SessionReport;

/// Figures without which a run has shown nothing, faults apart (I19).
const NEEDED: [&str; 7] =
    ["clocks-acknowledged", "rows-checked", "rows-read", "retries", "elections", "bytes-lost", "replicas-compared"];

/// What sessions have done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Rows read from servers.
    pub(super) rows_read: u64,
    /// Messages sent again.
    pub(super) retries: u64,
    /// Messages that servers recognised as repeats.
    pub(super) repeats: u64,
    /// How often a shard's messages had to go to another node.
    pub(super) failovers: u64,
}

impl From<&SessionReport> for Work {
    fn from(report: &SessionReport) -> Self {
        Self {
            rows_read: report.rows_read,
            retries: report.counters.retries,
            repeats: report.counters.repeats,
            failovers: report.failovers,
        }
    }
}

impl AddAssign for Work {
    fn add_assign(&mut self, other: Self) {
        self.rows_read += other.rows_read;
        self.retries += other.retries;
        self.repeats += other.repeats;
        self.failovers += other.failovers;
    }
}

/// Figures of a run, or the sums of many, by name. As text: `name=value` with spaces between.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report(BTreeMap<String, u64>);

impl Report {
    /// Adds to a figure.
    pub fn count(&mut self, name: &str, value: u64) {
        *self.0.entry(name.to_owned()).or_default() += value;
    }

    /// A figure; 0 if nothing was counted.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds another run's figures.
    pub fn add(&mut self, other: &Self) {
        other.0.iter().for_each(|(name, value)| self.count(name, *value));
    }

    /// The figures in a text that [`fmt::Display`] wrote; none if it is no such text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut report = Self::default();
        for figure in text.split_whitespace() {
            let (name, value) = figure.split_once('=')?;
            report.count(name, value.parse().ok()?);
        }
        Some(report)
    }

    /// The first figure that is 0 although a run without it shows nothing.
    pub(super) fn missing<'a>(&self, faults: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let mut needed = NEEDED.into_iter().map(str::to_owned).chain(faults.into_iter().map(str::to_owned));
        needed.find(|name| self.get(name) == 0)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let figures: Vec<String> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        f.write_str(&figures.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_summed_and_survive_their_text() {
        let mut report = Report::default();
        report.count("retries", 2);
        report.count("elections", 1);
        report.add(&report.clone());
        assert_eq!(report.to_string(), "elections=2 retries=4");
        assert_eq!(Report::parse(&report.to_string()), Some(report));
        assert_eq!(Report::parse("ok then"), None);
    }

    #[test]
    fn what_did_not_happen_is_named() {
        let mut report = Report::default();
        NEEDED.iter().for_each(|name| report.count(name, 1));
        assert_eq!(report.missing(["leader-killed"]), Some("leader-killed".to_owned()));
        report.count("leader-killed", 1);
        assert_eq!(report.missing(["leader-killed"]), None);
        assert_eq!(Report::default().missing([]), Some("clocks-acknowledged".to_owned()));
    }
}
