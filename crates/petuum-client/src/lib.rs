//! The client: sessions, cache, reads, commits and reconnection, async and blocking
