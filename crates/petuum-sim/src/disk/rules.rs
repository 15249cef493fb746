//! Which operations of a simulated disk fail, and how: by operation and kind of file, after a number of passes, a
//! number of times. Counting only: no chance and no time, so that a rule hits the same operation in every run.

/// An operation of the disk that a [`Rule`] can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Opening or creating a file.
    Open,
    /// Appending bytes to a file.
    Append,
    /// Making a file's content durable.
    Sync,
    /// Reading from an open file.
    Read,
    /// Renaming a file.
    Rename,
    /// Deleting a file.
    Delete,
    /// Making a directory's entries durable; the kind of file is always [`FileKind::Other`].
    SyncDirectory,
}

/// What a file is to RocksDB, read off its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FileKind {
    /// A write-ahead log, `*.log`.
    Wal,
    /// A table or blob file, `*.sst` or `*.blob`.
    Sst,
    /// `MANIFEST-*`.
    Manifest,
    /// All else: `CURRENT`, `IDENTITY`, `LOCK`, options, temporary files, directories.
    Other,
}

impl FileKind {
    /// The kind of the file at `path`.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        match name.rsplit_once('.') {
            Some((_, "log")) => Self::Wal,
            Some((_, "sst" | "blob")) => Self::Sst,
            _ if name.starts_with("MANIFEST-") => Self::Manifest,
            _ => Self::Other,
        }
    }
}

/// What happens to a matched operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It fails with an I/O error and does nothing. After a failed sync the bytes it should have made durable never
    /// become durable, whatever later syncs answer, as on Linux, where a failed write-back drops the dirty pages.
    Eio,
    /// It fails for want of space and does nothing.
    Enospc,
    /// The disk loses its power before the operation: it and all later ones fail until the power is back.
    PowerCut,
    /// A read gives only the first half of the bytes that are there, and no error.
    ShortRead,
    /// Of the bytes that are read or appended one bit is wrong, this one counted around, and there is no error. What is
    /// read is right again the next time; what is appended stays wrong.
    FlippedBit(u64),
}

impl Fault {
    /// Whether it can happen to an operation.
    #[must_use]
    pub const fn fits(self, op: Op) -> bool {
        match self {
            Self::Eio | Self::Enospc | Self::PowerCut => true,
            Self::ShortRead => matches!(op, Op::Read),
            Self::FlippedBit(_) => matches!(op, Op::Read | Op::Append),
        }
    }
}

/// One injected fault: the first `skip` matching operations pass, then `times` of them fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The operation that is matched.
    pub op: Op,
    /// The kind of file that is matched; any, if none.
    pub kind: Option<FileKind>,
    /// How many matching operations pass first.
    pub skip: u64,
    /// How many fail after that; all, if none.
    pub times: Option<u64>,
    /// What happens to them.
    pub fault: Fault,
}

impl Rule {
    /// The next operation `op` on a file of `kind` fails once with `fault`.
    #[must_use]
    pub fn once(op: Op, kind: FileKind, fault: Fault) -> Self {
        Self { op, kind: Some(kind), skip: 0, times: Some(1), fault }
    }

    /// The same rule, after `skip` matching operations have passed.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// The same rule, for every matching operation from the first hit on.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }

    /// Whether this operation fails, counted down.
    pub(super) fn hit(&mut self, op: Op, kind: FileKind) -> Option<Fault> {
        if self.op != op || self.kind.is_some_and(|wanted| wanted != kind) {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        match &mut self.times {
            None => Some(self.fault),
            Some(0) => None,
            Some(left) => {
                *left -= 1;
                Some(self.fault)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_off_names() {
        let cases = [
            ("/000004.log", FileKind::Wal),
            ("/a/000012.sst", FileKind::Sst),
            ("/a/000012.blob", FileKind::Sst),
            ("/MANIFEST-000005", FileKind::Manifest),
            ("/CURRENT", FileKind::Other),
            ("/log", FileKind::Other),
            ("/000005.dbtmp", FileKind::Other),
        ];
        for (path, kind) in cases {
            assert_eq!(FileKind::of(path), kind, "{path}");
        }
    }

    #[test]
    fn a_rule_skips_then_hits_then_rests() {
        let mut rule = Rule { op: Op::Sync, kind: Some(FileKind::Wal), skip: 2, times: Some(2), fault: Fault::Eio };
        assert_eq!(rule.hit(Op::Append, FileKind::Wal), None);
        assert_eq!(rule.hit(Op::Sync, FileKind::Sst), None);
        let hits: Vec<_> = (0..6).map(|_| rule.hit(Op::Sync, FileKind::Wal).is_some()).collect();
        assert_eq!(hits, [false, false, true, true, false, false]);
    }

    #[test]
    fn bytes_are_spoilt_only_where_there_are_any() {
        assert!(Fault::ShortRead.fits(Op::Read) && !Fault::ShortRead.fits(Op::Append));
        assert!(Fault::FlippedBit(1).fits(Op::Append) && !Fault::FlippedBit(1).fits(Op::Sync));
        assert!(Fault::Eio.fits(Op::Rename));
    }
}
