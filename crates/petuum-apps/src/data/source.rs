//! A data file as a stream, plain or gzip-compressed, that can skip and knows its byte offset.
//!
//! Not a parser. Compression is told from the first two bytes, not from the name. What a caller asks to read is
//! bounded by the caller; nothing here allocates by a number that a file states.

use super::error::{Error, Place, Problem};
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 256 * 1024;
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// An open file.
pub(crate) struct Source {
    path: PathBuf,
    stream: Stream,
    offset: u64,
}

enum Stream {
    Plain(BufReader<File>),
    Gzip(Box<BufReader<MultiGzDecoder<BufReader<File>>>>),
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let io = |e: io::Error| Error::new(path, Place::Whole, e.into());
        let mut plain = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(io)?);
        let stream = if plain.fill_buf().map_err(io)?.starts_with(&GZIP_MAGIC) {
            Stream::Gzip(Box::new(BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(plain))))
        } else {
            Stream::Plain(plain)
        };
        Ok(Self { path: path.to_owned(), stream, offset: 0 })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the uncompressed content consumed so far.
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// An error at the current offset.
    pub(crate) fn error(&self, problem: Problem) -> Error {
        Error::new(&self.path, Place::Byte(self.offset), problem)
    }

    /// Fills the buffer, or says how much was there.
    pub(crate) fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            let got = match self.read(&mut buffer[filled..]) {
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(self.error(e.into())),
            };
            if got == 0 {
                let missing = Problem::Truncated { expected: (buffer.len() - filled) as u64, got: 0 };
                return Err(self.error(missing));
            }
            filled += got;
        }
        Ok(())
    }

    /// Passes over bytes: by seeking in a plain file, by decompressing else. A plain file that ends within them is
    /// noticed here too.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        // The last byte is read, because seeking beyond the end succeeds.
        let passed = match &mut self.stream {
            Stream::Plain(file) => {
                let by = i64::try_from(bytes - 1).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput));
                by.and_then(|by| file.seek_relative(by)).map(|()| bytes - 1)
            }
            Stream::Gzip(gzip) => io::copy(&mut gzip.by_ref().take(bytes - 1), &mut io::sink()),
        };
        let passed = passed.map_err(|e| self.error(e.into()))?;
        if passed < bytes - 1 {
            return Err(self.error(Problem::Truncated { expected: bytes, got: passed }));
        }
        self.offset += passed;
        self.read_exact(&mut [0])
    }

    /// Whether everything has been read; for a gzip file this checks its checksum too.
    pub(crate) fn at_end(&mut self) -> Result<bool, Error> {
        let rest = self.fill_buf().map(<[u8]>::is_empty);
        rest.map_err(|e| self.error(e.into()))
    }

    /// Reads one line of at most `limit` bytes without its end (LF or CRLF); `false` at the end of the file.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>, limit: usize) -> Result<bool, Error> {
        line.clear();
        let read = self.by_ref().take(limit as u64 + 1).read_until(b'\n', line);
        read.map_err(|e| self.error(e.into()))?;
        if line.is_empty() {
            return Ok(false);
        }
        if line.len() > limit {
            return Err(self.error(Problem::Limit {
                what: "or more bytes in one line",
                got: line.len() as u64,
                limit: limit as u64,
            }));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Ok(true)
    }
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = match &mut self.stream {
            Stream::Plain(file) => file.read(buffer),
            Stream::Gzip(gzip) => gzip.read(buffer),
        }?;
        self.offset += got as u64;
        Ok(got)
    }
}

impl BufRead for Source {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.stream {
            Stream::Plain(file) => file.fill_buf(),
            Stream::Gzip(gzip) => gzip.fill_buf(),
        }
    }

    fn consume(&mut self, amount: usize) {
        self.offset += amount as u64;
        match &mut self.stream {
            Stream::Plain(file) => file.consume(amount),
            Stream::Gzip(gzip) => gzip.consume(amount),
        }
    }
}
