//! The checks, on the project itself. `cargo xtask` prints the same findings.

use xtask::{Problem, layers, links, rules, tidy, tree};

fn expect_none(problems: &[Problem]) {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{} problems:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn files_are_tidy() {
    expect_none(&tidy::check(&tree::sources(&tree::root()).unwrap()));
}

#[test]
fn arrows_between_crates_are_those_of_the_architecture() {
    let root = tree::root();
    let (sources, documents) = (tree::sources(&root).unwrap(), tree::documents(&root).unwrap());
    expect_none(&layers::check_project(&root, &sources, &documents).unwrap());
}

#[test]
fn documents_point_to_what_exists() {
    let root = tree::root();
    expect_none(&links::check(&root, &tree::documents(&root).unwrap()));
}

#[test]
fn every_built_rule_is_named_by_code_and_by_a_test() {
    let root = tree::root();
    expect_none(&rules::check(&tree::sources(&root).unwrap(), &tree::documents(&root).unwrap()));
}
