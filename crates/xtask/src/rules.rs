//! Whether the numbered statements of docs/protocol.md are all there, and each rule that is built is named by the code
//! that implements it and by a test; and whether each test that README.md names for a guarantee exists.

use crate::tree::File;
use crate::{Problem, markdown, mask};
use std::ops::Range;

/// The document with the rules.
pub const DOCUMENT: &str = "docs/protocol.md";
const README: &str = "README.md";
/// Marks a rule that no code implements, or a guarantee that no test shows.
const NOT_YET: &str = "not yet";
/// The statements: their letter and how many there are.
const STATEMENTS: [(char, u32); 3] = [('G', 10), ('P', 26), ('I', 20)];

/// Checks both documents against the sources.
#[must_use]
pub fn check(sources: &[File], documents: &[File]) -> Vec<Problem> {
    let text = |path: &str| documents.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    // This crate names rules only as examples.
    let sources: Vec<Split> =
        sources.iter().filter(|file| !file.path.starts_with("crates/xtask/")).map(Split::of).collect();
    let mut problems = check_protocol(text(DOCUMENT), &sources);
    problems.extend(check_guarantees(text(README), &sources));
    problems
}

/// A file with the parts that are tests.
struct Split<'a> {
    file: &'a File,
    code: String,
    tests: Vec<Range<usize>>,
}

impl<'a> Split<'a> {
    fn of(file: &'a File) -> Self {
        let code = mask::code(&file.text);
        let whole = file.is_test || file.path.starts_with("sim-tests/");
        let tests = if whole { std::iter::once(0..code.len()).collect() } else { mask::tests(&code) };
        Self { file, code, tests }
    }

    fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Whether the file names a rule, in comments or code: `P4`, or a function called `p4_…`; within tests, or outside.
    fn names(&self, rule: &str, in_tests: bool) -> bool {
        let function = format!("fn {}_", rule.to_lowercase());
        let functions = self.code.match_indices(&function).map(|(at, _)| at);
        mask::words(&self.file.text, rule).chain(functions).any(|at| self.in_test(at) == in_tests)
    }

    fn has_function(&self, name: &str) -> bool {
        mask::words(&self.code, name).any(|at| self.code[..at].ends_with("fn "))
    }
}

fn check_protocol(protocol: &str, sources: &[Split<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (letter, count) in STATEMENTS {
        for number in 1..=count {
            let statement = format!("{letter}{number}");
            match &headings(protocol, &statement)[..] {
                [heading] if letter == 'P' && !heading.contains(NOT_YET) => {
                    problems.extend(check_built(&statement, sources));
                }
                [_] => {}
                found => {
                    let what = format!("{} headings start with {statement}; expected 1", found.len());
                    problems.push(Problem::new(DOCUMENT, what));
                }
            }
        }
    }
    problems
}

/// Headings and table rows whose first word is the statement's number.
fn headings<'a>(protocol: &'a str, statement: &str) -> Vec<&'a str> {
    let number = |line: &'a str| line.trim_start_matches(['#', '|', ' ']).split_whitespace().next();
    let marked = protocol.lines().filter(|line| line.starts_with('#') || line.starts_with('|'));
    marked.filter(|line| number(line) == Some(statement)).collect()
}

fn check_built(rule: &str, sources: &[Split<'_>]) -> Vec<Problem> {
    let missing = |in_tests| !sources.iter().any(|source| source.names(rule, in_tests));
    let mut problems = Vec::new();
    if missing(false) {
        problems.push(Problem::new(DOCUMENT, format!("{rule} counts as built, but no source names it")));
    }
    if missing(true) {
        problems.push(Problem::new(DOCUMENT, format!("{rule} counts as built, but no test names it")));
    }
    problems
}

/// Rows of the README's table of guarantees: the last cell names tests in code spans, or says "not yet".
fn check_guarantees(readme: &str, sources: &[Split<'_>]) -> Vec<Problem> {
    let mut problems = Vec::new();
    let rows = markdown::table(readme, &["guarantee"]).unwrap_or_default();
    for number in 1..=STATEMENTS[0].1 {
        let guarantee = format!("G{number}");
        let named = |row: &&Vec<&str>| row.first().is_some_and(|cell| mask::words(cell, &guarantee).next().is_some());
        let Some(shown) = rows.iter().find(named).and_then(|row| row.last()) else {
            problems.push(Problem::new(README, format!("{guarantee} is missing from the table of guarantees")));
            continue;
        };
        let mut tests = markdown::code_spans(shown).peekable();
        if tests.peek().is_none() && !shown.contains(NOT_YET) {
            problems.push(Problem::new(README, format!("{guarantee} names no test and does not say \"{NOT_YET}\"")));
        }
        for test in tests {
            let function = test.rsplit("::").next().unwrap_or(test);
            if !sources.iter().any(|source| source.has_function(function)) {
                problems
                    .push(Problem::new(README, format!("{guarantee} names the test `{test}`, which does not exist")));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    /// A protocol in which only `built` is not marked.
    fn protocol(built: &str) -> String {
        let mut text = String::new();
        for (letter, count) in STATEMENTS {
            for number in 1..=count {
                let mark = if format!("{letter}{number}") == built { "" } else { "(not yet)" };
                writeln!(text, "### {letter}{number} Words {mark}").unwrap();
            }
        }
        text
    }

    fn found(protocol: &str, sources: &[File]) -> Vec<String> {
        let splits: Vec<Split> = sources.iter().map(Split::of).collect();
        check_protocol(protocol, &splits).iter().map(|problem| problem.what.clone()).collect()
    }

    #[test]
    fn a_rule_named_in_code_and_in_a_test_passes() {
        let source = File::new("crates/a/src/a.rs", "//! A.\n// P4: once.\nfn a() {}\n");
        let test = File::new("crates/a/tests/it/a.rs", "//! A.\nfn p4_repeat() {}\n");
        assert_eq!(found(&protocol("P4"), &[source, test]), Vec::<String>::new());
        let both = File::new("crates/a/src/a.rs", "//! P4.\n#[cfg(test)]\nmod tests { /* P4 */ }\n");
        assert_eq!(found(&protocol("P4"), &[both]), Vec::<String>::new());
    }

    #[test]
    fn a_rule_that_only_code_or_only_a_test_names_is_found() {
        let source = File::new("crates/a/src/a.rs", "//! P4, and P14 elsewhere.\n");
        assert_eq!(found(&protocol("P4"), &[source]), ["P4 counts as built, but no test names it"]);
        let test = File::new("sim-tests/src/a.rs", "//! P4.\n");
        assert_eq!(found(&protocol("P4"), &[test]), ["P4 counts as built, but no source names it"]);
    }

    #[test]
    fn a_missing_and_a_doubled_statement_are_found() {
        let text = protocol("").replace("### G3 ", "### G2 ");
        assert_eq!(found(&text, &[]), ["2 headings start with G2; expected 1", "0 headings start with G3; expected 1"]);
    }

    #[test]
    fn guarantees_name_tests_that_exist_or_say_not_yet() {
        let mut readme = String::from("| guarantee | shown by |\n|---|---|\n");
        for number in 3..=10 {
            writeln!(readme, "| **G{number}** words | not yet |").unwrap();
        }
        readme.push_str("| **G1** words | `a::it_lasts`, `a::gone` |\n| **G2** words | |\n");
        let source = File::new("crates/a/src/a.rs", "//! gone\nfn it_lasts() {}\n");
        let found: Vec<String> =
            check_guarantees(&readme, &[Split::of(&source)]).iter().map(|p| p.what.clone()).collect();
        assert_eq!(
            found,
            ["G1 names the test `a::gone`, which does not exist", "G2 names no test and does not say \"not yet\"",]
        );
        assert_eq!(check_guarantees("", &[]).len(), 10);
    }
}
