//! Checksums: CRC-32C for pieces on disks and wires, XXH3 for the sums that replicas compare (G6, G9).

/// CRC-32C of bytes.
#[must_use]
pub fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// XXH3-64 of bytes under a seed.
#[must_use]
pub fn hash(seed: u64, bytes: &[u8]) -> u64 {
    twox_hash::XxHash3_64::oneshot_with_seed(seed, bytes)
}
