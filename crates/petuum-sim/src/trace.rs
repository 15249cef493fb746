//! A trace of everything a simulation logs, at every level and from every crate, with virtual instead of real time: two
//! runs of one seed must write the same bytes.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::clock;

/// Writes the calling thread's log events to a file while it lives.
#[must_use = "events are written only while this lives"]
pub struct Trace {
    output: Output,
    _subscriber: DefaultGuard,
}

impl Trace {
    /// Begins a trace at `path`, replacing the file.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn to_file(path: &Path) -> io::Result<Self> {
        let output = Output(Arc::new(Mutex::new(BufWriter::new(File::create(path)?))));
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_timer(VirtualTime)
            .with_writer(output.clone())
            .finish();
        Ok(Self { output, _subscriber: tracing::subscriber::set_default(subscriber) })
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// If the last bytes could not be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.output.flush()
    }
}

struct VirtualTime;

impl FormatTime for VirtualTime {
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        match turmoil::sim_elapsed().or_else(clock::elapsed) {
            Some(elapsed) => write!(writer, "{:.6}", elapsed.as_secs_f64()),
            None => write!(writer, "-"),
        }
    }
}

/// One file for all events; a line is written whole, so nothing is lost when a simulation panics between two.
#[derive(Clone)]
struct Output(Arc<Mutex<BufWriter<File>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

impl<'a> MakeWriter<'a> for Output {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
