//! The files of one simulated disk: what a process sees, what would survive a power failure, and how one becomes the
//! other. Plain data, without threads or RocksDB; `ffi.rs` puts it behind a lock and hands it to C++.
//!
//! Rules of the model:
//! * A file's bytes survive up to the length of its last sync. Of the bytes behind it, and of a truncation that no sync
//!   followed, chance decides, for each file by itself: nothing survives, all, a beginning, a beginning with zeros or
//!   noise behind it, or all but a hole of zeros or noise in the middle, when a later page was written first.
//! * A name (created, renamed, linked, deleted) survives as its directory stood at the directory's last sync, or as it
//!   stands now: chance decides for each file by itself. Syncing a file does not make its name durable. A renaming is
//!   atomic. Directories themselves are durable once made.
//! * After a failed sync a file's unsynced bytes can no longer become durable (Linux drops the dirty pages).
//! * A disk that ignores syncs keeps nothing that it was not made to keep before.

mod file;
mod loss;

use std::collections::{BTreeMap, BTreeSet};

use super::Counters;
use super::rules::{Fault, FileKind, Op, Rule};
use file::File;

/// Why an operation is refused. The numbers are known to `shim.cc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(super) enum Refusal {
    NotFound = 1,
    Exists = 2,
    Io = 3,
    NoSpace = 4,
    Off = 5,
    Locked = 6,
    NotEmpty = 7,
}

/// What is wrong with the bytes of an operation that succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spoilt {
    Not,
    /// Only the first half of them is there.
    Half,
    /// One of their bits is wrong: this, counted around.
    Flipped(u64),
}

impl Spoilt {
    /// Spoils the bytes, and gives how many of them are there.
    fn spoil(self, bytes: &mut [u8]) -> usize {
        let count = bytes.len();
        match self {
            Self::Half => count / 2,
            Self::Flipped(bit) if count > 0 => {
                let bit = bit % (8 * count as u64);
                bytes[usize::try_from(bit / 8).expect("within the bytes")] ^= 1 << (bit % 8);
                count
            }
            Self::Not | Self::Flipped(_) => count,
        }
    }
}

/// How a file is opened. The numbers are known to `shim.cc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Create,
    Reopen,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileId(u64);

#[derive(Clone, Debug)]
struct Handle {
    file: FileId,
    kind: FileKind,
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct Model {
    files: BTreeMap<FileId, File>,
    visible: BTreeMap<String, FileId>,
    durable: BTreeMap<String, FileId>,
    directories: BTreeSet<String>,
    handles: BTreeMap<u64, Handle>,
    locks: BTreeSet<String>,
    next_id: u64,
    pub(super) powered: bool,
    pub(super) sync_ignored: bool,
    pub(super) rules: Vec<Rule>,
    pub(super) counters: Counters,
}

impl Model {
    pub(super) fn new() -> Self {
        Self {
            files: BTreeMap::new(),
            visible: BTreeMap::new(),
            durable: BTreeMap::new(),
            directories: BTreeSet::from(["/".to_owned()]),
            handles: BTreeMap::new(),
            locks: BTreeSet::new(),
            next_id: 1,
            powered: true,
            sync_ignored: false,
            rules: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Whether the operation may go on, after power and rules had their say.
    fn admit(&mut self, op: Op, kind: FileKind) -> Result<(), Refusal> {
        self.admit_bytes(op, kind).map(drop)
    }

    /// The same for an operation that carries bytes, and what is wrong with them.
    fn admit_bytes(&mut self, op: Op, kind: FileKind) -> Result<Spoilt, Refusal> {
        self.powered()?;
        let Some(fault) = self.rules.iter_mut().find_map(|rule| rule.hit(op, kind)) else { return Ok(Spoilt::Not) };
        self.counters.injected += 1;
        match fault {
            Fault::Eio => Err(Refusal::Io),
            Fault::Enospc => Err(Refusal::NoSpace),
            Fault::PowerCut => {
                self.powered = false;
                Err(Refusal::Off)
            }
            Fault::ShortRead => Ok(Spoilt::Half),
            Fault::FlippedBit(bit) => Ok(Spoilt::Flipped(bit)),
        }
    }

    fn powered(&self) -> Result<(), Refusal> {
        if self.powered { Ok(()) } else { Err(Refusal::Off) }
    }

    fn fresh(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    pub(super) fn open(&mut self, path: &str, mode: Mode) -> Result<u64, Refusal> {
        let path = normalise(path);
        let kind = FileKind::of(&path);
        self.admit(Op::Open, kind)?;
        let file = match (self.visible.get(&path).copied(), mode) {
            (None, Mode::Read) => return Err(Refusal::NotFound),
            (None, _) => self.create(path)?,
            (Some(file), Mode::Read | Mode::Reopen) => file,
            (Some(file), Mode::Create) => {
                self.file(file).truncate(0);
                file
            }
        };
        let handle = self.fresh();
        self.handles.insert(handle, Handle { file, kind });
        Ok(handle)
    }

    fn create(&mut self, path: String) -> Result<FileId, Refusal> {
        if !self.directories.contains(parent(&path)) {
            return Err(Refusal::NotFound);
        }
        let file = FileId(self.fresh());
        self.files.insert(file, File::default());
        self.visible.insert(path, file);
        Ok(file)
    }

    fn file(&mut self, id: FileId) -> &mut File {
        self.files.get_mut(&id).expect("names and handles point to files that exist")
    }

    /// The open file behind a handle; a handle from before a power failure has none.
    fn handle(&self, handle: u64) -> Result<Handle, Refusal> {
        self.handles.get(&handle).cloned().ok_or(Refusal::Off)
    }

    pub(super) fn close(&mut self, handle: u64) {
        self.handles.remove(&handle);
        self.collect();
    }

    pub(super) fn read(&mut self, handle: u64, offset: u64, into: &mut [u8]) -> Result<usize, Refusal> {
        let Handle { file, kind } = self.handle(handle)?;
        let spoilt = self.admit_bytes(Op::Read, kind)?;
        let data = &self.file(file).data;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(data.len());
        let len = into.len().min(data.len() - start);
        into[..len].copy_from_slice(&data[start..start + len]);
        Ok(spoilt.spoil(&mut into[..len]))
    }

    pub(super) fn append(&mut self, handle: u64, bytes: &[u8]) -> Result<(), Refusal> {
        let Handle { file, kind } = self.handle(handle)?;
        let spoilt = self.admit_bytes(Op::Append, kind)?;
        let data = &mut self.file(file).data;
        let before = data.len();
        data.extend_from_slice(bytes);
        let written = spoilt.spoil(&mut data[before..]);
        data.truncate(before + written);
        Ok(())
    }

    pub(super) fn truncate(&mut self, handle: u64, len: u64) -> Result<(), Refusal> {
        let Handle { file, .. } = self.handle(handle)?;
        self.powered()?;
        self.file(file).truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(())
    }

    pub(super) fn sync(&mut self, handle: u64) -> Result<(), Refusal> {
        let Handle { file, kind } = self.handle(handle)?;
        let admitted = self.admit(Op::Sync, kind);
        if matches!(admitted, Err(Refusal::Io | Refusal::NoSpace)) {
            self.file(file).sync_failed = true;
        }
        admitted?;
        self.counters.syncs += 1;
        if !self.sync_ignored {
            self.file(file).sync();
        }
        Ok(())
    }

    pub(super) fn len(&mut self, handle: u64) -> Result<u64, Refusal> {
        let Handle { file, .. } = self.handle(handle)?;
        Ok(self.file(file).data.len() as u64)
    }

    /// Length, and whether it is a directory.
    pub(super) fn stat(&mut self, path: &str) -> Result<(u64, bool), Refusal> {
        self.powered()?;
        let path = normalise(path);
        match self.visible.get(&path).copied() {
            Some(file) => Ok((self.file(file).data.len() as u64, false)),
            None if self.directories.contains(&path) => Ok((0, true)),
            None => Err(Refusal::NotFound),
        }
    }

    pub(super) fn list(&self, path: &str) -> Result<Vec<String>, Refusal> {
        self.powered()?;
        let path = normalise(path);
        if !self.directories.contains(&path) {
            return Err(Refusal::NotFound);
        }
        let children = self.visible.keys().chain(&self.directories).filter(|child| is_child(&path, child));
        Ok(children.filter_map(|child| child.rsplit('/').next()).map(str::to_owned).collect())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        let (from, to) = (normalise(from), normalise(to));
        self.admit(Op::Rename, FileKind::of(&from))?;
        let file = self.visible.remove(&from).ok_or(Refusal::NotFound)?;
        self.visible.insert(to, file);
        self.collect();
        Ok(())
    }

    pub(super) fn link(&mut self, from: &str, to: &str) -> Result<(), Refusal> {
        self.powered()?;
        let (from, to) = (normalise(from), normalise(to));
        let file = *self.visible.get(&from).ok_or(Refusal::NotFound)?;
        if self.visible.contains_key(&to) {
            return Err(Refusal::Exists);
        }
        self.visible.insert(to, file);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &str) -> Result<(), Refusal> {
        let path = normalise(path);
        self.admit(Op::Delete, FileKind::of(&path))?;
        self.visible.remove(&path).ok_or(Refusal::NotFound)?;
        self.collect();
        Ok(())
    }

    pub(super) fn make_directory(&mut self, path: &str, must_be_new: bool) -> Result<(), Refusal> {
        self.powered()?;
        let path = normalise(path);
        if self.visible.contains_key(&path) || (must_be_new && self.directories.contains(&path)) {
            return Err(Refusal::Exists);
        }
        self.directories.extend(ancestors(&path).map(str::to_owned));
        self.directories.insert(path);
        Ok(())
    }

    /// The content of a file.
    pub(super) fn content(&mut self, path: &str) -> Result<Vec<u8>, Refusal> {
        let path = normalise(path);
        let spoilt = self.admit_bytes(Op::Read, FileKind::of(&path))?;
        let file = self.visible.get(&path).ok_or(Refusal::NotFound)?;
        let mut content = self.files[file].data.clone();
        let read = spoilt.spoil(&mut content);
        content.truncate(read);
        Ok(content)
    }

    /// Makes a file of this content, durably.
    pub(super) fn put(&mut self, path: &str, content: &[u8]) -> Result<(), Refusal> {
        let handle = self.open(path, Mode::Create)?;
        self.append(handle, content)?;
        self.sync(handle)?;
        self.close(handle);
        let path = normalise(path);
        let file = self.visible[&path];
        self.durable.insert(path, file);
        Ok(())
    }

    /// Changes the content of a file, durably.
    pub(super) fn change(&mut self, path: &str, change: impl FnOnce(&mut Vec<u8>)) -> Result<(), Refusal> {
        self.powered()?;
        let file = *self.visible.get(&normalise(path)).ok_or(Refusal::NotFound)?;
        let file = self.file(file);
        change(&mut file.data);
        file.sync();
        Ok(())
    }

    pub(super) fn remove_directory(&mut self, path: &str) -> Result<(), Refusal> {
        let path = normalise(path);
        if !self.list(&path)?.is_empty() {
            return Err(Refusal::NotEmpty);
        }
        self.directories.remove(&path);
        self.durable.retain(|name, _| !is_child(&path, name));
        Ok(())
    }

    pub(super) fn sync_directory(&mut self, path: &str) -> Result<(), Refusal> {
        self.admit(Op::SyncDirectory, FileKind::Other)?;
        let path = normalise(path);
        self.counters.syncs += 1;
        if self.sync_ignored {
            return Ok(());
        }
        self.durable.retain(|name, _| !is_child(&path, name));
        let now = self.visible.iter().filter(|(name, _)| is_child(&path, name));
        self.durable.extend(now.map(|(name, file)| (name.clone(), *file)));
        self.collect();
        Ok(())
    }

    pub(super) fn lock(&mut self, path: &str) -> Result<(), Refusal> {
        self.powered()?;
        let path = normalise(path);
        if !self.visible.contains_key(&path) {
            self.create(path.clone())?;
        }
        if self.locks.insert(path) { Ok(()) } else { Err(Refusal::Locked) }
    }

    /// Works without power too: locks belong to the process, and tell whether it still has the database open.
    pub(super) fn unlock(&mut self, path: &str) {
        self.locks.remove(&normalise(path));
    }

    /// The path of a lock that is held, if any.
    pub(super) fn held_lock(&self) -> Option<&str> {
        self.locks.first().map(String::as_str)
    }

    /// Forgets what the process held, for a process that died without the machine.
    pub(super) fn forget_handles(&mut self) {
        self.handles.clear();
        self.collect();
    }

    /// Drops files that no name, durable name or handle leads to.
    fn collect(&mut self) {
        let mut used: BTreeSet<FileId> = self.visible.values().chain(self.durable.values()).copied().collect();
        used.extend(self.handles.values().map(|handle| handle.file));
        self.files.retain(|id, _| used.contains(id));
    }
}

/// One spelling per path: absolute, without empty parts, `.` or a slash at the end.
fn normalise(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    format!("/{}", parts.join("/"))
}

/// The directory of a normalised path; the root's is itself.
fn parent(path: &str) -> &str {
    match path.rfind('/') {
        Some(0) | None => "/",
        Some(slash) => &path[..slash],
    }
}

/// The directories above a normalised path.
fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').skip(1).map(|(slash, _)| &path[..slash])
}

fn is_child(directory: &str, path: &str) -> bool {
    path != "/" && parent(path) == directory
}

#[cfg(test)]
mod tests;
