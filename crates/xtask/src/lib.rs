//! Checks on the project's own shape: who may use whom, how files look, whether documents still tell the truth.
//!
//! Not a build tool: it writes nothing. Each check is a function from texts to a list of [`Problem`]s, so that its unit
//! tests can feed it a small bad example; `tests/project.rs` runs them on the project itself (`cargo xtask` prints the
//! same). Reading order: [`tree`] (the files), [`mask`] (code without comments and literals), [`tidy`], [`layers`],
//! [`links`], [`rules`].

pub mod layers;
pub mod links;
pub mod markdown;
pub mod mask;
pub mod rules;
pub mod tidy;
pub mod tree;

use std::fmt;
use std::io;
use std::path::Path;

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, with a line where there is one; or the crate.
    pub place: String,
    /// What is wrong and what to do.
    pub what: String,
}

impl Problem {
    /// A problem of a place.
    pub fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self { place: place.into(), what: what.into() }
    }

    /// A problem at an offset of a file.
    #[must_use]
    pub fn at(path: &str, text: &str, offset: usize, what: impl Into<String>) -> Self {
        Self::new(format!("{path}:{}", mask::line(text, offset)), what)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Every check on the project at `root`.
///
/// # Errors
/// If a file cannot be read or cargo cannot tell the crates' dependencies.
pub fn check_all(root: &Path) -> io::Result<Vec<Problem>> {
    let sources = tree::sources(root)?;
    let documents = tree::documents(root)?;
    let mut problems = tidy::check(&sources);
    problems.extend(layers::check_project(root, &sources, &documents)?);
    problems.extend(links::check(root, &documents));
    problems.extend(rules::check(&sources, &documents));
    Ok(problems)
}
