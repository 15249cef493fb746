//! One seed in two processes gives one trace; two seeds do not.

use std::fs;
use std::path::Path;
use std::process::Command;

use petuum_sim::{Trace, meta};

use crate::scenario::Scenario;

const TRACE_FILE: &str = "PETUUM_SIM_TEST_TRACE";
const SEED: &str = "PETUUM_SIM_TEST_SEED";

/// One traced run, in a process of its own.
#[test]
#[ignore = "the child process of the other tests here"]
fn child() {
    let variable = |name| std::env::var(name).expect("set by the parent");
    let trace = Trace::to_file(Path::new(&variable(TRACE_FILE))).unwrap();
    Scenario::new(variable(SEED).parse().unwrap(), 200).run_with_faults();
    trace.finish().unwrap();
}

fn command(seed: u64, trace: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "meta::child", "--ignored", "--test-threads=1", "--quiet"]);
    command.env(TRACE_FILE, trace).env(SEED, seed.to_string());
    command
}

#[test]
fn one_seed_gives_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..=3 {
        let equal = meta::run_twice(folder.path(), |trace| command(seed, trace)).unwrap();
        assert!(equal.lines > 1000, "{equal:?}");
    }
    let text = fs::read_to_string(folder.path().join("first.trace")).unwrap();
    assert!(text.contains("power lost"), "hosts' and runner's events are there");
    assert!(text.contains("turmoil"), "libraries' events are there");
    assert!(text.contains("tv_sec: 17000000"), "std's wall clock is virtual");
}

#[test]
fn another_seed_gives_another_trace() {
    let folder = tempfile::tempdir().unwrap();
    let paths = [1, 2].map(|seed| {
        let path = folder.path().join(seed.to_string());
        assert!(command(seed, &path).status().unwrap().success());
        path
    });
    let error = meta::compare(&paths[0], &paths[1]).unwrap_err();
    assert!(matches!(error, meta::Error::Differs { line: 1.., first: Some(_), second: Some(_) }), "{error}");
}

#[test]
fn differences_are_found_where_they_begin() {
    let folder = tempfile::tempdir().unwrap();
    let compare = |first: &str, second: &str| {
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        fs::write(&paths[0], first).unwrap();
        fs::write(&paths[1], second).unwrap();
        meta::compare(&paths[0], &paths[1])
    };
    assert_eq!(compare("x\ny\n", "x\ny\n").unwrap(), meta::Equal { lines: 2, bytes: 4 });
    let text = compare("x\ny\n", "x\nz\n").unwrap_err().to_string();
    assert_eq!(text, "two runs of one seed differ at line 2:\n  first:  y\n  second: z");
    let text = compare("x\n", "x\ny\n").unwrap_err().to_string();
    assert_eq!(text, "two runs of one seed differ at line 2:\n  first:  (ends here)\n  second: y");
}

#[test]
fn a_failed_or_silent_run_is_no_success() {
    let folder = tempfile::tempdir().unwrap();
    let error = meta::run_twice(folder.path(), |_| Command::new("false")).unwrap_err();
    assert!(matches!(error, meta::Error::Failed { run: 1, .. }), "{error}");
    let touch = |trace: &Path| {
        let mut command = Command::new("touch");
        command.arg(trace);
        command
    };
    let error = meta::run_twice(folder.path(), touch).unwrap_err();
    assert!(matches!(error, meta::Error::Empty(_)), "{error}");
}
