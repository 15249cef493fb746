//! Rows as replicas answered them, within a byte limit (G10).
//!
//! Not here: own writes that the rows lack ([`super::Workspace`] adds them when it shows a row).
//!
//! Invariants (P10, G5): a row is never replaced by one of lower index; no row of a shard is taken below the shard's
//! floor, which is at least the index of every row of it that was let go. So a worker never reads an older state of a
//! row than it has read. Which row goes when space is short depends only on the order of calls.

use petuum_chaos::{Mutant, mutated};
use petuum_types::read::{ReadAnswer, RowAnswer};
use petuum_types::{Clock, LogIndex, RowId, ShardId, TableId, Values};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a row's bookkeeping, roughly: so that many tiny rows have a bound too.
const ROW_OVERHEAD_BYTES: usize = 160;

/// The cache's and the own updates' bounds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CacheSettings {
    /// Bytes of rows kept.
    pub cache_bytes: usize,
    /// Bytes of own updates kept for rows whose answers do not contain them yet; past it reads wait for the own clock.
    pub own_bytes: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        let limit = petuum_types::limits::CACHE_BYTES;
        Self { cache_bytes: limit, own_bytes: limit / 4 }
    }
}

/// A row as of one applied index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CachedRow {
    pub(super) values: Arc<Values>,
    /// The log index that last changed it.
    pub(super) changed: LogIndex,
    /// The answer's applied index.
    pub(super) index: LogIndex,
    /// The shard's min clock there.
    pub(super) min_clock: Clock,
    /// The worker's own clock there: its updates of lower clocks are contained.
    pub(super) own_clock: Clock,
    shard: ShardId,
    used: u64,
}

impl CachedRow {
    fn bytes(&self) -> usize {
        ROW_OVERHEAD_BYTES + self.values.len() * self.values.value_type().bytes()
    }
}

type Key = (TableId, RowId);

/// Rows by (table, row); the one used longest ago goes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowCache {
    rows: BTreeMap<Key, CachedRow>,
    /// By when they were used last.
    order: BTreeMap<u64, Key>,
    uses: u64,
    bytes: usize,
    limit: usize,
    floors: BTreeMap<ShardId, LogIndex>,
}

impl RowCache {
    /// An empty cache of at most `limit` bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self { rows: BTreeMap::new(), order: BTreeMap::new(), uses: 0, bytes: 0, limit, floors: BTreeMap::new() }
    }

    /// The least index that an answer for this row may have.
    #[must_use]
    pub fn min_index(&self, shard: ShardId, table: TableId, row: RowId) -> LogIndex {
        let floor = self.floors.get(&shard).copied().unwrap_or_default();
        self.rows.get(&(table, row)).map_or(floor, |cached| cached.index.max(floor))
    }

    /// The log index that last changed a row, as cached.
    #[must_use]
    pub fn changed(&self, table: TableId, row: RowId) -> Option<LogIndex> {
        self.rows.get(&(table, row)).map(|cached| cached.changed)
    }

    /// Bytes kept.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many rows are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row if it is cached, as one that has just been used.
    pub(super) fn get(&mut self, table: TableId, row: RowId) -> Option<&CachedRow> {
        let key = (table, row);
        let cached = self.rows.get_mut(&key)?;
        self.uses += 1;
        self.order.remove(&cached.used);
        cached.used = self.uses;
        self.order.insert(cached.used, key);
        Some(cached)
    }

    /// Takes a row of an answer and gives the newest state of it that is known: the answer's, or a cached one of higher
    /// index. `None` if a newer state may have been read and let go since the read was sent: it must be read again.
    /// The limit holds again after [`RowCache::shrink`]: once per answer, so that no row of an answer is refused for a
    /// row that its neighbour drove out.
    pub(super) fn insert(
        &mut self,
        shard: ShardId,
        table: TableId,
        answer: &ReadAnswer,
        row: &RowAnswer,
    ) -> Option<CachedRow> {
        let key = (table, row.row);
        let older_may = mutated(Mutant::OlderRowReplacesNewer);
        if let Some(cached) = self.rows.get(&key)
            && cached.index >= answer.index
            && !older_may
        {
            return self.get(table, row.row).cloned();
        }
        if answer.index < self.min_index(shard, table, row.row) && !older_may {
            return None;
        }
        self.remove(key);
        self.uses += 1;
        let cached = CachedRow {
            values: Arc::clone(&row.values),
            changed: row.changed,
            index: answer.index,
            min_clock: answer.min_clock,
            own_clock: answer.own_clock,
            shard,
            used: self.uses,
        };
        self.bytes += cached.bytes();
        self.order.insert(cached.used, key);
        self.rows.insert(key, cached.clone());
        Some(cached)
    }

    /// Lets rows go until the limit holds; a row larger than it goes at once, and has its floor all the same.
    pub(super) fn shrink(&mut self) {
        while self.bytes > self.limit {
            let (_, key) = self.order.pop_first().expect("bytes are kept, so a row is");
            let gone = self.remove(key).expect("rows in order of use are cached");
            if !mutated(Mutant::EvictedRowLeavesNoFloor) {
                let floor = self.floors.entry(gone.shard).or_default();
                *floor = gone.index.max(*floor);
            }
        }
    }

    fn remove(&mut self, key: Key) -> Option<CachedRow> {
        let gone = self.rows.remove(&key)?;
        self.order.remove(&gone.used);
        self.bytes -= gone.bytes();
        Some(gone)
    }
}
