//! Reads that wait on a replica until its applied state satisfies them (P11), within bounds (G10).
//!
//! Not here: deadlines and connections; whoever parks a read hands in a token and gets it back with the answer.
//!
//! Reads are kept by what they wait for, so that an entry that brings none of it costs a look per kind, not per read. A
//! command may change anything: after one, and after a snapshot was installed over one, every read is looked at.

use crate::read::{Blocked, ReadOutcome};
use crate::shard::Shard;
use petuum_chaos::{Mutant, mutated};
use petuum_types::read::Read;
use petuum_types::{LogIndex, RowId, limits};
use std::collections::BTreeMap;

/// Reads of one shard that wait on this replica. `T` is what the caller answers with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ParkedReads<T> {
    groups: BTreeMap<Option<Blocked>, Vec<Parked<T>>>,
    count: usize,
    bytes: usize,
    count_max: usize,
    bytes_max: usize,
    /// Numbers reads in the order they came, in which they are answered.
    next: u64,
    /// [`Shard::last_command`] when reads were last looked at.
    command: LogIndex,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Parked<T> {
    number: u64,
    read: Read,
    token: T,
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParkLimit {
    /// Too many reads.
    #[error("{max} reads already wait in this shard; try again later")]
    Count {
        /// The limit.
        max: usize,
    },
    /// Too many bytes of requests.
    #[error("waiting reads would take {bytes} bytes in this shard; the limit is {max}; try again later")]
    Bytes {
        /// With this read.
        bytes: usize,
        /// The limit.
        max: usize,
    },
}

/// A read that was not parked; the caller answers it with a retryable error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{limit}")]
pub struct Full<T> {
    /// What was handed in.
    pub token: T,
    /// Why.
    pub limit: ParkLimit,
}

impl<T> Default for ParkedReads<T> {
    fn default() -> Self {
        Self::new(limits::PARKED_READS_MAX, limits::PARKED_BYTES_MAX)
    }
}

impl<T> ParkedReads<T> {
    /// Room for `count_max` reads whose requests take up to `bytes_max` bytes.
    #[must_use]
    pub const fn new(count_max: usize, bytes_max: usize) -> Self {
        Self { groups: BTreeMap::new(), count: 0, bytes: 0, count_max, bytes_max, next: 0, command: LogIndex(0) }
    }

    /// How many wait.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Whether none waits.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Keeps a read that [`Shard::read`] told to wait. It is looked at by the next [`ParkedReads::wake`] in any case, so
    /// nothing applied in between is missed.
    ///
    /// # Errors
    /// [`Full`] with the token, over a limit.
    pub fn park(&mut self, read: Read, token: T) -> Result<(), Full<T>> {
        let bytes = self.bytes + read_bytes(&read);
        if self.count >= self.count_max {
            return Err(Full { token, limit: ParkLimit::Count { max: self.count_max } });
        }
        if bytes > self.bytes_max {
            return Err(Full { token, limit: ParkLimit::Bytes { bytes, max: self.bytes_max } });
        }
        self.bytes = bytes;
        self.count += 1;
        let parked = Parked { number: self.next, read, token };
        self.next += 1;
        self.groups.entry(None).or_default().push(parked);
        Ok(())
    }

    /// Takes out every read that need not wait any more, with its outcome, in the order they were parked. To be called
    /// after every change of applied state: entry, snapshot, restore.
    pub fn wake(&mut self, shard: &Shard) -> Vec<(T, ReadOutcome)> {
        if self.is_empty() {
            return Vec::new();
        }
        let all = self.command != shard.last_command() && !mutated(Mutant::ReadNotWokenByCommand);
        self.command = shard.last_command();
        let due = |group: &Option<Blocked>| all || group.is_none_or(|blocked| shard.has_come(blocked));
        let due: Vec<Vec<Parked<T>>> =
            self.groups.extract_if(.., |group, _| due(group)).map(|(_, reads)| reads).collect();
        let mut woken = Vec::new();
        for parked in due.into_iter().flatten() {
            match shard.blocked(&parked.read) {
                Some(blocked) => self.groups.entry(Some(blocked)).or_default().push(parked),
                None => {
                    self.forget(&parked);
                    let outcome = shard.read(&parked.read);
                    woken.push((parked.number, parked.token, outcome));
                }
            }
        }
        woken.sort_by_key(|(number, ..)| *number);
        woken.into_iter().map(|(_, token, outcome)| (token, outcome)).collect()
    }

    /// Takes out the reads whose token `is_gone` picks: past their deadline, or with nobody left to answer.
    pub fn remove(&mut self, mut is_gone: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut gone = Vec::new();
        for group in self.groups.values_mut() {
            gone.extend(group.extract_if(.., |parked| is_gone(&parked.token)));
        }
        self.groups.retain(|_, group| !group.is_empty());
        gone.iter().for_each(|parked| self.forget(parked));
        in_order(gone)
    }

    /// Takes out every read, each with the reason it is to be answered with: the replica is removed or stops, or the
    /// shard's slots move (P11).
    pub fn drain<R: Clone>(&mut self, reason: R) -> Vec<(T, R)> {
        let all: Vec<_> = std::mem::take(&mut self.groups).into_values().flatten().collect();
        (self.count, self.bytes) = (0, 0);
        in_order(all).into_iter().map(|token| (token, reason.clone())).collect()
    }

    /// How many wait that need not, as the shard is: none, once [`ParkedReads::wake`] has seen its state. For audits.
    #[must_use]
    pub fn overdue(&self, shard: &Shard) -> usize {
        self.groups.values().flatten().filter(|parked| shard.blocked(&parked.read).is_none()).count()
    }

    fn forget(&mut self, parked: &Parked<T>) {
        self.count -= 1;
        self.bytes -= read_bytes(&parked.read);
    }
}

fn in_order<T>(mut parked: Vec<Parked<T>>) -> Vec<T> {
    parked.sort_by_key(|p| p.number);
    parked.into_iter().map(|p| p.token).collect()
}

fn read_bytes(read: &Read) -> usize {
    size_of::<Read>() + read.rows.len() * size_of::<RowId>()
}
