//! The seam through which the store looks at RocksDB's log files before RocksDB does: the write-ahead logs and the
//! manifest, on the operating system's file system or on a simulated one.
//!
//! It knows names and bytes, and nothing of what they mean.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The files of a store's directory, looked at while RocksDB does not have it open.
pub trait LogFiles: Send + Sync {
    /// The names of all files in a directory; none if there is no such directory.
    ///
    /// # Errors
    /// If it cannot be read.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// A file, to be read from its beginning.
    ///
    /// # Errors
    /// If there is no such file or it cannot be read.
    fn open(&self, dir: &Path, name: &str) -> io::Result<Box<dyn Read>>;

    /// Makes a file of this content, durably, its name too.
    ///
    /// # Errors
    /// If it cannot be written.
    fn create(&self, dir: &Path, name: &str, content: &[u8]) -> io::Result<()>;

    /// Writes one byte at a place inside a file, durably.
    ///
    /// # Errors
    /// If there is no such file or it cannot be written.
    fn overwrite(&self, dir: &Path, name: &str, at: u64, byte: u8) -> io::Result<()>;

    /// Makes a file durable as it is.
    ///
    /// # Errors
    /// If there is no such file or it cannot be synced.
    fn sync(&self, dir: &Path, name: &str) -> io::Result<()>;

    /// Removes a file, durably.
    ///
    /// # Errors
    /// If there is no such file or it cannot be removed.
    fn remove(&self, dir: &Path, name: &str) -> io::Result<()>;

    /// Makes a file end after so many bytes, durably.
    ///
    /// # Errors
    /// If there is no such file or it cannot be written.
    fn cut(&self, dir: &Path, name: &str, len: u64) -> io::Result<()>;
}

/// The operating system's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SystemFiles;

impl LogFiles for SystemFiles {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        // Names that are no text are none of RocksDB's.
        entries.filter_map(|entry| entry.map(|entry| entry.file_name().into_string().ok()).transpose()).collect()
    }

    fn open(&self, dir: &Path, name: &str) -> io::Result<Box<dyn Read>> {
        Ok(Box::new(File::open(dir.join(name))?))
    }

    fn create(&self, dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
        let mut file = File::create(dir.join(name))?;
        file.write_all(content)?;
        file.sync_all()?;
        File::open(dir)?.sync_all()
    }

    fn overwrite(&self, dir: &Path, name: &str, at: u64, byte: u8) -> io::Result<()> {
        let mut file = File::options().write(true).open(dir.join(name))?;
        file.seek(SeekFrom::Start(at))?;
        file.write_all(&[byte])?;
        file.sync_all()
    }

    fn sync(&self, dir: &Path, name: &str) -> io::Result<()> {
        File::options().write(true).open(dir.join(name))?.sync_all()
    }

    fn remove(&self, dir: &Path, name: &str) -> io::Result<()> {
        std::fs::remove_file(dir.join(name))?;
        File::open(dir)?.sync_all()
    }

    fn cut(&self, dir: &Path, name: &str, len: u64) -> io::Result<()> {
        let file = File::options().write(true).open(dir.join(name))?;
        file.set_len(len)?;
        file.sync_all()
    }
}
