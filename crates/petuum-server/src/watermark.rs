//! The free-space watermark (P22): below it commits are refused and all else goes on.

use petuum_storage::Store;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The last look at the disk's free space.
#[derive(Clone, Debug)]
pub(crate) struct Watermark {
    free: Arc<AtomicU64>,
    least: u64,
}

impl Watermark {
    /// Looks at once and then every `period`, for as long as the task runs.
    pub(crate) fn watch(store: Store, least: u64, period: Duration) -> (Self, impl Future<Output = ()> + Send) {
        let free = Arc::new(AtomicU64::new(store.free_bytes().unwrap_or(u64::MAX)));
        let looking = free.clone();
        let watch = async move {
            loop {
                tokio::time::sleep(period).await;
                match store.free_bytes() {
                    Ok(bytes) => looking.store(bytes, Ordering::Relaxed),
                    // Not knowing is no reason to refuse: a write that fails ends the node.
                    Err(error) => tracing::warn!(%error, "the free space of the data directory is unknown"),
                }
            }
        };
        (Self { free, least }, watch)
    }

    /// Free bytes at the last look.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    /// Why commits are refused, if they are.
    pub(crate) fn refusal(&self) -> Option<String> {
        let free = self.free_bytes();
        (free < self.least).then(|| {
            format!(
                "{free} bytes are free in the data directory; commits wait until {} are: free some space",
                self.least
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p22_below_the_watermark_commits_are_refused_with_both_figures() {
        let watermark = Watermark { free: Arc::new(AtomicU64::new(100)), least: 100 };
        assert_eq!(watermark.refusal(), None);
        watermark.free.store(99, Ordering::Relaxed);
        let refusal = watermark.refusal().unwrap();
        assert!(refusal.starts_with("99 bytes are free") && refusal.contains("until 100 are"), "{refusal}");
    }
}
