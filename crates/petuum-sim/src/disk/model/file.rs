//! The bytes of one file: what was written, and how much of it is durable.

#[derive(Clone, Debug, Default)]
pub(super) struct File {
    pub(super) data: Vec<u8>,
    /// How much of `data` a power failure leaves, while `replaced` is none.
    pub(super) synced: usize,
    /// The durable content, if the file was cut shorter than it and not synced since.
    pub(super) replaced: Option<Vec<u8>>,
    /// A sync failed: the bytes behind `synced` are gone from the cache and will never be durable.
    pub(super) sync_failed: bool,
}

impl File {
    pub(super) fn truncate(&mut self, len: usize) {
        if len < self.synced && self.replaced.is_none() {
            self.replaced = Some(self.data[..self.synced].to_vec());
        }
        self.data.truncate(len);
        self.synced = self.synced.min(len);
    }

    pub(super) fn sync(&mut self) {
        if !self.sync_failed {
            self.synced = self.data.len();
            self.replaced = None;
        }
    }

    pub(super) fn unsynced(&self) -> usize {
        self.data.len() - self.synced
    }
}
