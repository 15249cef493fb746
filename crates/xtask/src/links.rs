//! Whether documents point to what exists: links between files, with their anchors, and paths in code spans.

use crate::tree::File;
use crate::{Problem, markdown};
use std::path::Path;

/// A code span that starts with one of these is the path of a file or folder.
const FOLDERS: [&str; 8] = ["crates/", "docs/", "tools/", "proto/", "examples/", "benches/", "sim-tests/", ".cargo/"];

/// Checks every document.
#[must_use]
pub fn check(root: &Path, documents: &[File]) -> Vec<Problem> {
    documents.iter().flat_map(|file| check_file(root, documents, file)).collect()
}

fn check_file(root: &Path, documents: &[File], file: &File) -> Vec<Problem> {
    let prose = markdown::prose(&file.text);
    let mut problems = Vec::new();
    for (offset, target) in targets(&prose) {
        if let Some(what) = broken(root, documents, file, target) {
            problems.push(Problem::at(&file.path, &prose, offset, what));
        }
    }
    for path in markdown::code_spans(&prose).filter(|span| is_path(span)) {
        if !root.join(path).exists() {
            problems.push(Problem::new(&file.path, format!("names `{path}`, which does not exist")));
        }
    }
    problems
}

/// The targets of `[text](target)`, each with its offset; not those in code.
fn targets(prose: &str) -> Vec<(usize, &str)> {
    let starts = prose.match_indices("](").map(|(at, _)| at + 2);
    let in_code = |at: usize| !prose[..at].matches('`').count().is_multiple_of(2);
    starts
        .filter(|&at| !in_code(at))
        .filter_map(|at| prose[at..].find(')').map(|length| (at, &prose[at..at + length])))
        .collect()
}

fn broken(root: &Path, documents: &[File], file: &File, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let linked = if path.is_empty() { file.path.clone() } else { resolve(&file.path, path) };
    let document = documents.iter().find(|document| document.path == linked);
    match (anchor, document) {
        (Some(anchor), Some(document)) if !markdown::anchors(&document.text).any(|a| a == anchor) => {
            Some(format!("links to {target}, but {linked} has no such heading"))
        }
        (_, Some(_)) => None,
        (_, None) if root.join(&linked).exists() => None,
        (_, None) => Some(format!("links to {target}, which does not exist")),
    }
}

/// A link's path from the root, given the path of the document that holds it.
fn resolve(document: &str, link: &str) -> String {
    let mut parts: Vec<&str> = document.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn is_path(span: &str) -> bool {
    FOLDERS.iter().any(|folder| span.starts_with(folder)) && !span.contains([' ', '*', '<', '{', '…', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    fn found(text: &str) -> Vec<String> {
        let file = File::new("README.md", text);
        let documents = [file.clone(), File::new("docs/protocol.md", "# P\n### P4 Dedup\n")];
        check_file(&tree::root(), &documents, &file).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_exists_passes() {
        let text = "# A b\n[x](docs/protocol.md#p4-dedup) [y](#a-b) [z](https://example.org/q) `crates/xtask/src/lib.rs`\n\
                    ```\n[v](no.md)\n```\n`[w](no.md)` `crates/<name>`";
        assert_eq!(found(text), Vec::<String>::new());
    }

    #[test]
    fn a_link_to_nothing_is_found() {
        assert_eq!(found("a\n[x](docs/no.md)"), ["README.md:2: links to docs/no.md, which does not exist"]);
    }

    #[test]
    fn an_anchor_without_heading_is_found() {
        let expected = "README.md:1: links to docs/protocol.md#p99, but docs/protocol.md has no such heading";
        assert_eq!(found("[x](docs/protocol.md#p99)"), [expected]);
        assert_eq!(found("[x](#no)"), ["README.md:1: links to #no, but README.md has no such heading"]);
    }

    #[test]
    fn links_are_relative_to_their_document() {
        assert_eq!(resolve("docs/protocol.md", "../README.md"), "README.md");
        assert_eq!(resolve("docs/protocol.md", "./a/b.md"), "docs/a/b.md");
    }

    #[test]
    fn a_path_that_does_not_exist_is_found() {
        assert_eq!(found("`tools/no.sh`"), ["README.md: names `tools/no.sh`, which does not exist"]);
    }
}
