//! The project's files: Rust sources and documents, in the order of their paths.

use crate::mask;
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
    /// Whether all of it is compiled for tests only.
    pub is_test: bool,
}

impl File {
    /// A file that a test makes up.
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let path = path.into();
        Self { is_test: path.contains("/tests/"), path, text: text.into() }
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
    mark_tests(&mut files);
    Ok(files)
}

/// Marks the files of modules declared `#[cfg(test)] mod name;`, and of the modules in them.
fn mark_tests(files: &mut [File]) {
    let modules: Vec<String> = files.iter().flat_map(test_modules).collect();
    for file in files {
        file.is_test |= modules.iter().any(|module| {
            file.path.strip_prefix(module.as_str()).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        });
    }
}

/// Paths, without `.rs`, of the modules that a file declares for tests only.
fn test_modules(file: &File) -> Vec<String> {
    let code = mask::code(&file.text);
    let stem = file.path.trim_end_matches(".rs");
    let folder = ["/lib", "/main", "/mod"].iter().find_map(|name| stem.strip_suffix(name)).unwrap_or(stem);
    let beside = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let declared = mask::tests(&code).into_iter().filter_map(|range| {
        let mut words = code[range.clone()].strip_suffix(';')?.split_whitespace().rev();
        let name = words.next().filter(|_| words.next() == Some("mod"))?;
        // The path is a literal, which the code alone does not have.
        let path = file.text[range].split_once("#[path = \"").and_then(|(_, rest)| rest.split_once(".rs\"]"));
        Some(path.map_or_else(|| format!("{folder}/{name}"), |(path, _)| format!("{beside}/{path}")))
    });
    declared.collect()
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
    Ok(File::new(relative, text))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn modules_declared_for_tests_are_tests() {
        let mut files = [
            File::new("crates/a/src/lib.rs", "#[cfg(test)]\npub(crate) mod b;\nmod c;\n#[cfg(test)]\nuse d::e;"),
            File::new("crates/a/src/b.rs", ""),
            File::new("crates/a/src/b/f.rs", ""),
            File::new("crates/a/src/bb.rs", ""),
            File::new("crates/a/src/c.rs", "#[cfg(test)] mod tests;\n#[cfg(test)]\n#[path = \"c_more.rs\"]\nmod more;"),
            File::new("crates/a/src/c/tests.rs", ""),
            File::new("crates/a/src/c_more.rs", ""),
            File::new("crates/a/tests/it/g.rs", ""),
        ];
        mark_tests(&mut files);
        assert_eq!(files.map(|file| file.is_test), [false, true, true, false, false, true, true, true]);
    }
}
