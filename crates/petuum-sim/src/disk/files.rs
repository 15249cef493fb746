//! The disk as the node's store sees it before RocksDB does: its files by name, to be looked through and mended.

use std::io::{self, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use petuum_storage::{LogFiles, StoreOptions};

use super::Disk;
use super::model::Refusal;

impl Disk {
    /// Options for a node's store on this disk, at [`Disk::ROOT`].
    #[must_use]
    pub fn store_options(&self) -> StoreOptions {
        StoreOptions::simulated(self.env(), Arc::new(self.clone()))
    }
}

impl LogFiles for Disk {
    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        match self.inner.shared.model().list(text(dir)?) {
            Err(Refusal::NotFound) => Ok(Vec::new()),
            names => names.map_err(|refusal| refused(refusal, dir)),
        }
    }

    fn open(&self, dir: &Path, name: &str) -> io::Result<Box<dyn Read>> {
        let path = dir.join(name);
        let content = self.inner.shared.model().content(text(&path)?);
        Ok(Box::new(Cursor::new(content.map_err(|refusal| refused(refusal, &path))?)))
    }

    fn create(&self, dir: &Path, name: &str, content: &[u8]) -> io::Result<()> {
        let path = dir.join(name);
        let created = self.inner.shared.model().put(text(&path)?, content);
        created.map_err(|refusal| refused(refusal, &path))
    }

    fn overwrite(&self, dir: &Path, name: &str, at: u64, byte: u8) -> io::Result<()> {
        let at = usize::try_from(at).map_err(io::Error::other)?;
        self.change(&dir.join(name), |data| data[at] = byte)
    }

    fn sync(&self, dir: &Path, name: &str) -> io::Result<()> {
        self.change(&dir.join(name), |_| ())
    }

    fn remove(&self, dir: &Path, name: &str) -> io::Result<()> {
        let path = dir.join(name);
        let (file, directory) = (text(&path)?, text(dir)?);
        let mut model = self.inner.shared.model();
        let removed = model.remove(file).and_then(|()| model.sync_directory(directory));
        removed.map_err(|refusal| refused(refusal, &path))
    }

    fn cut(&self, dir: &Path, name: &str, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        self.change(&dir.join(name), |data| data.truncate(len))
    }
}

impl Disk {
    fn change(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let changed = self.inner.shared.model().change(text(path)?, change);
        changed.map_err(|refusal| refused(refusal, path))
    }
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str().ok_or_else(|| io::Error::other("the path is not UTF-8"))
}

fn refused(refusal: Refusal, path: &Path) -> io::Error {
    match refusal {
        Refusal::NotFound => io::Error::new(io::ErrorKind::NotFound, format!("no file {}", path.display())),
        Refusal::NoSpace => io::Error::other(format!("injected ENOSPC: {}", path.display())),
        Refusal::Io => io::Error::other(format!("injected EIO: {}", path.display())),
        _ => io::Error::other("the simulated disk has no power"),
    }
}
