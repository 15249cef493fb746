//! The project's files: Rust sources and documents, in the order of their paths.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders with Rust sources. `tools/rocksdb` is a workspace of its own with nothing in it.
const SOURCE_FOLDERS: [&str; 4] = ["crates", "sim-tests", "examples", "benches"];
/// Folders with documents, besides the root.
const DOCUMENT_FOLDERS: [&str; 4] = ["docs", "examples", "crates", "tools"];

/// A text file.
#[derive(Clone, Debug)]
pub struct File {
    /// From the project's root, with `/`.
    pub path: String,
    /// What it holds.
    pub text: String,
}

impl File {
    /// A file that a test makes up.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Whether the whole file is test code, by its name or folder.
    #[must_use]
    pub fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.ends_with("_tests.rs") || self.path.contains("/tests/")
    }
}

/// The project's root.
///
/// # Panics
/// If this crate has left `crates/`.
#[must_use]
pub fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.expect("this crate lies in crates/ under the root").to_path_buf()
}

/// Every Rust file.
///
/// # Errors
/// If a folder or file cannot be read.
pub fn sources(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for folder in SOURCE_FOLDERS {
        collect(root, &root.join(folder), "rs", &mut files)?;
    }
    Ok(files)
}

/// Every Markdown file.
///
/// # Errors
/// If a folder or file cannot be read.
pub fn documents(root: &Path) -> io::Result<Vec<File>> {
    let mut files = Vec::new();
    for entry in sorted(root)? {
        if entry.extension().is_some_and(|e| e == "md") {
            files.push(read(root, &entry)?);
        }
    }
    for folder in DOCUMENT_FOLDERS {
        collect(root, &root.join(folder), "md", &mut files)?;
    }
    Ok(files)
}

fn collect(root: &Path, folder: &Path, extension: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in sorted(folder)? {
        if entry.is_dir() {
            if !entry.ends_with("target") {
                collect(root, &entry, extension, files)?;
            }
        } else if entry.extension().is_some_and(|e| e == extension) {
            files.push(read(root, &entry)?);
        }
    }
    Ok(())
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    Ok(entries)
}

fn read(root: &Path, path: &Path) -> io::Result<File> {
    let relative = path.strip_prefix(root).expect("found under the root").to_string_lossy().replace('\\', "/");
    let text = fs::read_to_string(path)
        .map_err(|error| io::Error::new(error.kind(), format!("{relative} cannot be read as text: {error}")))?;
    Ok(File { path: relative, text })
}
