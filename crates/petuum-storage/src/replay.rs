//! What must be there once RocksDB has replayed its logs, written down before it does: it lets the logs go as it reads
//! them, so that a process that dies in between leaves nothing else by which a loss could be told.
//!
//! One line of a file, `durable first last checksum`, made durable before the database is opened and removed durably once
//! it was looked through. A file without its line's end is of a process that died before it opened anything.

use crate::LogFiles;
use std::io::{self, Read};
use std::path::Path;

/// Its name.
pub(crate) const NAME: &str = "REPLAYING";
/// Bytes that are read of it: its line is shorter.
const LEN_MAX: u64 = 128;

/// What the logs held before RocksDB replayed them, in sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Writes up to this one were durable.
    pub(crate) durable: u64,
    /// The first and last, if the logs are replayed as a whole.
    pub(crate) chain: Option<(u64, u64)>,
}

impl Held {
    /// The last write that must be there if `latest` is what RocksDB has come to and that is too little.
    pub(crate) fn missed_by(&self, latest: u64) -> Option<u64> {
        let cut_short = self.chain.is_some_and(|(first, last)| (first..last).contains(&latest));
        let last = self.chain.map_or(self.durable, |(_, last)| last.max(self.durable));
        (latest < self.durable || cut_short).then_some(last)
    }

    fn line(&self) -> String {
        let (first, last) = self.chain.unwrap_or((0, 0));
        let numbers = format!("{} {first} {last}", self.durable);
        format!("{numbers} {:08x}\n", crc32c::crc32c(numbers.as_bytes()))
    }

    fn parse(line: &str) -> Option<Self> {
        let (numbers, _) = line.rsplit_once(' ')?;
        let mut fields = numbers.split(' ').map(|number| number.parse().ok());
        let (durable, first, last) = (fields.next()??, fields.next()??, fields.next()??);
        let held = Self { durable, chain: (last > 0).then_some((first, last)) };
        (held.line() == line).then_some(held)
    }
}

/// Writes down, durably, what the logs hold.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn begin(files: &dyn LogFiles, dir: &Path, held: &Held) -> io::Result<()> {
    files.create(dir, NAME, held.line().as_bytes())
}

/// What an opening that did not come to its end had found.
///
/// # Errors
/// If it cannot be read, or is not what was written.
pub(crate) fn unfinished(files: &dyn LogFiles, dir: &Path) -> io::Result<Option<Held>> {
    let read = || {
        let mut line = String::new();
        files.open(dir, NAME)?.take(LEN_MAX).read_to_string(&mut line).map(|_| line)
    };
    let is_whole = |line: &String| line.ends_with('\n');
    // Only what is short twice is short on the disk.
    let mut line = read()?;
    if !is_whole(&line) {
        line = read()?;
    }
    if !is_whole(&line) {
        return Ok(None);
    }
    match Held::parse(&line) {
        Some(held) => Ok(Some(held)),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{NAME} holds {line:?}; expected three numbers and their checksum"),
        )),
    }
}

/// Forgets it, durably: later writes have numbers of their own.
///
/// # Errors
/// If it cannot be removed.
pub(crate) fn end(files: &dyn LogFiles, dir: &Path) -> io::Result<()> {
    files.remove(dir, NAME)
}

#[cfg(test)]
mod tests {
    use super::Held;

    #[test]
    fn a_line_is_read_as_it_was_written_or_not_at_all() {
        for held in [Held { durable: 7, chain: None }, Held { durable: 0, chain: Some((3, 90)) }] {
            let line = held.line();
            assert_eq!(Held::parse(&line), Some(held));
            for at in 0..line.len() {
                let mut bytes = line.clone().into_bytes();
                bytes[at] ^= 1;
                assert_eq!(std::str::from_utf8(&bytes).ok().and_then(Held::parse), None, "byte {at} of {line:?}");
            }
        }
    }

    #[test]
    fn a_replay_may_pass_over_a_chain_as_a_whole_but_not_over_its_end() {
        let held = Held { durable: 10, chain: Some((20, 30)) };
        assert_eq!(
            [9, 10, 19, 20, 29, 30, 31].map(|latest| held.missed_by(latest)),
            [Some(30), None, None, Some(30), Some(30), None, None]
        );
    }
}
