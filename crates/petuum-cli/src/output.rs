//! What people see: results on standard output, logs and errors on standard error.

use std::fmt;
use std::io::{IsTerminal, Write};

/// Why a command failed, in one line: what, and what to do.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<petuum_types::Error> for Failure {
    fn from(error: petuum_types::Error) -> Self {
        Self::new(error)
    }
}

/// Logs go to standard error; `PETUUM_LOG` filters them (`info`, `petuum_server=debug`, …), by default warnings. Raft's
/// own messages tell of every unreachable peer many times a second; what matters of them is told by us.
pub(crate) fn start_logging() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PETUUM_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn,openraft=off"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .init();
}

/// A line on standard output. A reader that has gone away (`petuum … | head`) ends the process quietly.
pub(crate) fn line(text: impl fmt::Display) {
    let mut out = std::io::stdout().lock();
    if writeln!(out, "{text}").and_then(|()| out.flush()).is_err() {
        end(Ok(()))
    }
}

/// A line on standard error.
pub(crate) fn note(text: impl fmt::Display) {
    // Nobody to tell if standard error is closed.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// The end of the process.
///
/// Destructors of C++ statics do not run: after a failure or a second signal threads of RocksDB, and tasks that use it,
/// still work with what they would destroy. Nothing is lost, as nothing is when a node is killed.
pub(crate) fn end(result: Result<(), Failure>) -> ! {
    let status = match result {
        Ok(()) => 0,
        Err(failure) => {
            note(format_args!("error: {failure}"));
            1
        }
    };
    // Nobody to tell if standard output is closed.
    let _ = std::io::stdout().flush();
    signal_hook::low_level::exit(status)
}
