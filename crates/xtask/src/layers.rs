//! Who may use whom. The tables of ARCHITECTURE.md are the only place where that is written; this module reads them
//! there and compares them with what cargo says.

use crate::tree::File;
use crate::{Problem, markdown, mask};
use cargo_metadata::{DependencyKind, MetadataCommand};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// The document with the tables.
pub const DOCUMENT: &str = "ARCHITECTURE.md";
/// Crates that a pure crate may not reach, at any depth: executors, networks, disks and sources of randomness.
const IMPURE: [&str; 12] = [
    "fastrand",
    "futures",
    "getrandom",
    "hyper",
    "librocksdb-sys",
    "mio",
    "openraft",
    "rand",
    "rocksdb",
    "tokio",
    "tonic",
    "turmoil",
];
/// What a pure crate's code may not name.
const IMPURE_WORDS: [&str; 6] = ["async", "std::env", "std::fs", "std::net", "std::process", "std::thread"];

/// The tables, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Each crate, from the bottom up.
    pub crates: Vec<Layer>,
    /// Libraries that only some crates may name: a name, or a beginning with `*`; and those crates.
    pub reserved: Vec<(String, BTreeSet<String>)>,
}

/// One crate's row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layer {
    /// The crate.
    pub name: String,
    /// Crates of this project that it may use.
    pub may_use: BTreeSet<String>,
    /// Whether it must stay free of async, I/O, clocks and randomness.
    pub pure: bool,
}

/// Which package uses which, by name; several versions of one package count as one.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// This project's packages.
    pub members: BTreeSet<String>,
    /// What ends up in a build, libraries and build scripts.
    pub uses: BTreeMap<String, BTreeSet<String>>,
    /// What members' tests use besides.
    pub tests_use: BTreeMap<String, BTreeSet<String>>,
}

impl Rules {
    /// Reads the tables.
    ///
    /// # Errors
    /// A sentence that names the missing table.
    pub fn read(document: &str) -> Result<Self, String> {
        let table = |header: &[&str]| {
            markdown::table(document, header).ok_or_else(|| format!("no table with the header {}", header.join(" | ")))
        };
        let names = |cell: &str| markdown::code_spans(cell).map(str::to_owned).collect::<BTreeSet<_>>();
        let crates = table(&["crate", "may use", "pure"])?;
        let reserved = table(&["library", "named only by"])?;
        let layer = |row: &Vec<&str>| match row[..] {
            [name, may_use, pure, ..] => {
                Some(Layer { name: name.trim_matches('`').to_owned(), may_use: names(may_use), pure: pure == "yes" })
            }
            _ => None,
        };
        let reservation = |row: &Vec<&str>| match row[..] {
            [libraries, owners, ..] => {
                Some(names(libraries).into_iter().map(|library| (library, names(owners))).collect::<Vec<_>>())
            }
            _ => None,
        };
        Ok(Self {
            crates: crates.iter().filter_map(layer).collect(),
            reserved: reserved.iter().filter_map(reservation).flatten().collect(),
        })
    }
}

impl Graph {
    /// Asks cargo. One fixed platform, so that the answer is the same on every machine.
    ///
    /// # Errors
    /// If cargo fails.
    pub fn of_project(root: &Path) -> io::Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .other_options(["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"].map(String::from).to_vec())
            .exec()
            .map_err(io::Error::other)?;
        let names: BTreeMap<_, _> = metadata.packages.iter().map(|p| (&p.id, p.name.to_string())).collect();
        let members = metadata.workspace_members.iter().map(|id| names[id].clone()).collect();
        let mut graph = Self { members, ..Self::default() };
        for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
            for dependency in &node.deps {
                let tests_only = dependency.dep_kinds.iter().all(|kind| kind.kind == DependencyKind::Development);
                let edges = if tests_only { &mut graph.tests_use } else { &mut graph.uses };
                edges.entry(names[&node.id].clone()).or_default().insert(names[&dependency.pkg].clone());
            }
        }
        Ok(graph)
    }

    /// The shortest way from a package to another that `wanted` accepts, both included.
    fn way(&self, from: &str, wanted: impl Fn(&str) -> bool) -> Option<Vec<String>> {
        let mut ways = vec![vec![from.to_owned()]];
        let mut seen = BTreeSet::from([from.to_owned()]);
        while !ways.is_empty() {
            let mut longer = Vec::new();
            for way in ways {
                let last = way.last().expect("a way starts somewhere");
                for next in self.uses.get(last).into_iter().flatten() {
                    let way: Vec<String> = way.iter().chain([next]).cloned().collect();
                    if wanted(next) {
                        return Some(way);
                    }
                    if seen.insert(next.clone()) {
                        longer.push(way);
                    }
                }
            }
            ways = longer;
        }
        None
    }
}

/// Checks the project against its own tables.
///
/// # Errors
/// If cargo fails.
pub fn check_project(root: &Path, sources: &[File], documents: &[File]) -> io::Result<Vec<Problem>> {
    let document = documents.iter().find(|file| file.path == DOCUMENT).map_or("", |file| &file.text);
    let rules = match Rules::read(document) {
        Ok(rules) => rules,
        Err(missing) => return Ok(vec![Problem::new(DOCUMENT, missing)]),
    };
    let mut problems = check(&rules, &Graph::of_project(root)?);
    problems.extend(check_words(&rules, sources));
    Ok(problems)
}

/// Checks the tables themselves and the arrows between packages.
#[must_use]
pub fn check(rules: &Rules, graph: &Graph) -> Vec<Problem> {
    let mut problems = check_tables(rules, graph);
    for layer in &rules.crates {
        problems.extend(check_arrows(rules, graph, layer));
        if layer.pure
            && let Some(way) = graph.way(&layer.name, |name| IMPURE.contains(&name))
        {
            problems.push(Problem::new(&layer.name, format!("is pure, but reaches {}", way[1..].join(" -> "))));
        }
    }
    problems
}

fn check_tables(rules: &Rules, graph: &Graph) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut lower = BTreeSet::new();
    for layer in &rules.crates {
        if !graph.members.contains(&layer.name) {
            problems.push(Problem::new(DOCUMENT, format!("{} is no crate of the workspace", layer.name)));
        }
        for upper in layer.may_use.difference(&lower) {
            problems.push(Problem::new(
                DOCUMENT,
                format!("{} may use {upper}, which stands not above it in the table", layer.name),
            ));
        }
        lower.insert(layer.name.clone());
    }
    let missing = graph.members.difference(&lower);
    problems.extend(missing.map(|name| Problem::new(DOCUMENT, format!("the crate {name} is missing from the table"))));
    problems
}

fn check_arrows(rules: &Rules, graph: &Graph, layer: &Layer) -> Vec<Problem> {
    let mut problems = Vec::new();
    let name = &layer.name;
    let uses = graph.uses.get(name).into_iter().flatten();
    let tests_use = graph.tests_use.get(name).into_iter().flatten();
    for used in uses.clone().filter(|used| graph.members.contains(*used) && !layer.may_use.contains(*used)) {
        problems.push(Problem::new(name, format!("uses {used}; {DOCUMENT} does not allow it")));
    }
    // Tests may use what lies above, but not what nothing at all may use.
    let anybody_may = |used: &String| rules.crates.iter().any(|layer| layer.may_use.contains(used));
    for used in tests_use.clone().filter(|used| graph.members.contains(*used) && !anybody_may(used)) {
        problems.push(Problem::new(name, format!("its tests use {used}, which nothing may use")));
    }
    for used in uses.chain(tests_use) {
        for (library, owners) in &rules.reserved {
            let matches = library.strip_suffix('*').map_or(used == library, |start| used.starts_with(start));
            if matches && !owners.contains(name) {
                problems.push(Problem::new(name, format!("uses {used}; {DOCUMENT} reserves it for {owners:?}")));
            }
        }
    }
    problems
}

/// Checks that the code of pure crates, their tests aside, names nothing impure.
#[must_use]
pub fn check_words(rules: &Rules, sources: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for layer in rules.crates.iter().filter(|layer| layer.pure) {
        let folder = format!("crates/{}/src/", layer.name);
        for File { path, text, .. } in sources.iter().filter(|file| file.path.starts_with(&folder) && !file.is_test) {
            let code = mask::code(text);
            let tests = mask::tests(&code);
            for word in IMPURE_WORDS {
                let found = mask::words(&code, word).filter(|at| !tests.iter().any(|range| range.contains(at)));
                problems.extend(found.map(|at| Problem::at(path, text, at, format!("a pure crate names {word}"))));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: &str = "\
| crate | may use | pure |
|---|---|---|
| `types` | | yes |
| `storage` | `types` | |
| `server` | `storage`, `types` | |
| `sims` | `server` | |

| library | named only by |
|---|---|
| `rocksdb`, `openraft*` | `storage` |
";

    fn edges(list: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (from, to) in list {
            edges.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        edges
    }

    fn found(uses: &[(&str, &str)], tests_use: &[(&str, &str)]) -> Vec<String> {
        let members = ["types", "storage", "server", "sims"].map(String::from).into();
        let graph = Graph { members, uses: edges(uses), tests_use: edges(tests_use) };
        check(&Rules::read(TABLES).unwrap(), &graph).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn allowed_arrows_pass() {
        let uses = [("storage", "types"), ("storage", "rocksdb"), ("server", "storage"), ("types", "serde")];
        assert_eq!(found(&uses, &[("types", "proptest"), ("storage", "server")]), Vec::<String>::new());
    }

    #[test]
    fn an_arrow_that_points_up_is_found() {
        assert_eq!(found(&[("storage", "server")], &[]), ["storage: uses server; ARCHITECTURE.md does not allow it"]);
    }

    #[test]
    fn nothing_may_use_the_top_not_even_tests() {
        assert_eq!(found(&[], &[("types", "sims")]), ["types: its tests use sims, which nothing may use"]);
    }

    #[test]
    fn a_pure_crate_that_reaches_an_executor_is_found_with_the_way() {
        let uses = [("types", "serde"), ("serde", "mid"), ("mid", "tokio"), ("tokio", "mid")];
        assert_eq!(found(&uses, &[]), ["types: is pure, but reaches serde -> mid -> tokio"]);
    }

    #[test]
    fn a_reserved_library_is_found_in_tests_too() {
        let expected = "server: uses openraft-rt; ARCHITECTURE.md reserves it for {\"storage\"}";
        assert_eq!(found(&[], &[("server", "openraft-rt")]), [expected]);
    }

    #[test]
    fn tables_that_do_not_fit_the_workspace_are_found() {
        let rules = Rules::read(&TABLES.replace("| `types` | |", "| `types` | `server` |")).unwrap();
        let members = ["types", "storage", "server", "extra"].map(String::from).into();
        let found: Vec<String> =
            check(&rules, &Graph { members, ..Graph::default() }).iter().map(|p| p.what.clone()).collect();
        assert_eq!(
            found,
            [
                "types may use server, which stands not above it in the table",
                "sims is no crate of the workspace",
                "the crate extra is missing from the table",
            ]
        );
        assert!(Rules::read("no tables").unwrap_err().contains("crate | may use | pure"));
    }

    #[test]
    fn an_impure_word_is_found_outside_tests_and_comments_only() {
        let rules = Rules::read(TABLES).unwrap();
        let bad = File::new("crates/types/src/a.rs", "//! No async.\nuse std::fs::File;\n");
        let good = File::new("crates/types/src/b.rs", "//! B.\n#[cfg(test)]\nmod tests { use std::fs; }\n");
        let impure = File::new("crates/storage/src/c.rs", "//! C.\nuse std::fs;\n");
        let found = check_words(&rules, &[bad, good, impure]);
        assert_eq!(found, [Problem::new("crates/types/src/a.rs:2", "a pure crate names std::fs")]);
    }
}
