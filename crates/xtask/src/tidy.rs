//! How every Rust file must look. A backstop for what clippy does not see or a crate could switch off.

use crate::tree::File;
use crate::{Problem, mask};

/// Lines of one file.
pub const LINES_MAX: usize = 800;

/// Words that no code may hold, and why. Macros are named with their `!`.
const BANNED: [(&str, &str); 5] = [
    ("todo!", "finish it, or leave it out"),
    ("unimplemented!", "finish it, or leave it out"),
    ("dbg!", "take the debugging out"),
    ("HashMap", "its order differs between runs; use BTreeMap"),
    ("HashSet", "its order differs between runs; use BTreeSet"),
];

/// Files over [`LINES_MAX`] lines, each with its reason. Empty is best.
const LONG_FILES: [(&str, &str); 0] = [];

/// Checks every file.
#[must_use]
pub fn check(sources: &[File]) -> Vec<Problem> {
    sources.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let File { path, text, is_test } = file;
    let mut problems = Vec::new();
    if !text.starts_with("//!") {
        problems.push(Problem::new(path, "opens without `//!`: say what the file is, what it is not, its invariants"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX && !LONG_FILES.iter().any(|(long, _)| long == path) {
        problems.push(Problem::new(path, format!("{lines} lines; expected at most {LINES_MAX}: split it")));
    }
    let code = mask::code(text);
    for (word, advice) in BANNED {
        problems.extend(mask::words(&code, word).map(|at| Problem::at(path, text, at, format!("{word}: {advice}"))));
    }
    if !is_test {
        let tests = mask::tests(&code);
        let bare = code.match_indices(".unwrap()").filter(|(at, _)| !tests.iter().any(|range| range.contains(at)));
        problems.extend(bare.map(|(at, _)| {
            Problem::at(path, text, at, "a bare unwrap: return an error, or say in `expect` why it holds")
        }));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&[File::new(path, text)]).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_tidy_file_passes() {
        let text =
            "//! Uses no HashMap.\nfn a() { \"todo!()\".len(); }\n#[cfg(test)]\nmod tests { fn b() { c.unwrap(); } }\n";
        assert_eq!(found("crates/a/src/lib.rs", text), Vec::<String>::new());
    }

    #[test]
    fn a_missing_opening_is_found() {
        assert!(found("a.rs", "fn a() {}\n")[0].contains("opens without"));
        assert!(found("a.rs", "// A.\nfn a() {}\n")[0].contains("opens without"));
    }

    #[test]
    fn a_long_file_is_found() {
        let text = format!("//! A.\n{}", "\n".repeat(LINES_MAX));
        assert_eq!(found("a.rs", &text), ["a.rs: 801 lines; expected at most 800: split it"]);
    }

    #[test]
    fn banned_words_are_found_with_their_line() {
        for (word, _) in BANNED {
            let found = found("a.rs", &format!("//! A.\nfn a() {{ {word}; }}\n"));
            assert!(found[0].starts_with(&format!("a.rs:2: {word}")), "{found:?}");
        }
    }

    #[test]
    fn a_bare_unwrap_is_found_outside_tests_only() {
        let text = "//! A.\nfn a() { b.unwrap(); }\n";
        assert!(found("crates/a/src/b.rs", text)[0].starts_with("crates/a/src/b.rs:2: a bare unwrap"));
        assert!(found("crates/a/tests/it/b.rs", text).is_empty());
    }
}
