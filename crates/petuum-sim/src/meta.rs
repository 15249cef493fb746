//! The check of the simulator itself: one seed, run in two processes, must give the same trace, byte for byte.
//!
//! Two processes, because two runs in one share what differs between processes: addresses, thread ids, statics.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// What two equal traces held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Equal {
    /// Lines of either trace.
    pub lines: u64,
    /// Bytes of either trace.
    pub bytes: u64,
}

/// Why the check failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The traces differ: something outside the seed decides.
    #[error(
        "two runs of one seed differ at line {line}:\n  first:  {}\n  second: {}",
        .first.as_deref().unwrap_or("(ends here)"),
        .second.as_deref().unwrap_or("(ends here)")
    )]
    Differs {
        /// The first line that differs, from 1.
        line: u64,
        /// It, in the first run; none if the trace ends before.
        first: Option<String>,
        /// It, in the second run.
        second: Option<String>,
    },
    /// A run failed by itself.
    #[error("run {run} ended with {status}: {command}")]
    Failed {
        /// 1 or 2.
        run: u8,
        /// How it ended.
        status: ExitStatus,
        /// What was run.
        command: String,
    },
    /// The runs wrote nothing, so that being equal means nothing.
    #[error("the traces are empty: expected the command to write one to {}", .0.display())]
    Empty(PathBuf),
    /// A file or process could not be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Runs the command that `command` makes for a trace file twice, one after the other, and compares what they wrote to
/// `folder/first.trace` and `folder/second.trace`.
///
/// # Errors
/// [`Error`]; the files stay, to be looked at.
pub fn run_twice(folder: &Path, command: impl Fn(&Path) -> Command) -> Result<Equal, Error> {
    let paths = [folder.join("first.trace"), folder.join("second.trace")];
    for (run, path) in (1..).zip(&paths) {
        let mut command = command(path);
        let text = format!("{command:?}");
        let status = command.status().map_err(|source| Error::Io { what: format!("cannot run {text}"), source })?;
        if !status.success() {
            return Err(Error::Failed { run, status, command: text });
        }
    }
    let equal = compare(&paths[0], &paths[1])?;
    if equal.lines == 0 { Err(Error::Empty(paths[0].clone())) } else { Ok(equal) }
}

/// Compares two traces.
///
/// # Errors
/// [`Error::Differs`] with the first line that differs, [`Error::Io`] if one cannot be read.
pub fn compare(first: &Path, second: &Path) -> Result<Equal, Error> {
    let mut readers = [open(first)?, open(second)?];
    let mut equal = Equal { lines: 0, bytes: 0 };
    loop {
        let [a, b] = [next_line(&mut readers[0], first)?, next_line(&mut readers[1], second)?];
        match (a, b) {
            (None, None) => return Ok(equal),
            (Some(a), Some(b)) if a == b => {
                equal.lines += 1;
                equal.bytes += a.len() as u64;
            }
            (a, b) => {
                let text = |line: Option<Vec<u8>>| line.map(|l| String::from_utf8_lossy(&l).trim_end().to_owned());
                return Err(Error::Differs { line: equal.lines + 1, first: text(a), second: text(b) });
            }
        }
    }
}

fn open(path: &Path) -> Result<BufReader<File>, Error> {
    let file = File::open(path).map_err(|source| unreadable(path, source))?;
    Ok(BufReader::new(file))
}

/// The next line with its end; none at the end of the file.
fn next_line(reader: &mut BufReader<File>, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let mut line = Vec::new();
    let read = reader.read_until(b'\n', &mut line).map_err(|source| unreadable(path, source))?;
    Ok((read > 0).then_some(line))
}

fn unreadable(path: &Path, source: io::Error) -> Error {
    Error::Io { what: format!("cannot read the trace {}", path.display()), source }
}
