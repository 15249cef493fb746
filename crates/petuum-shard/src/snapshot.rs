//! A shard's state as a stream of bytes, and back.
//!
//! ```text
//! stream   "PTSH" | version u8 = 1 | 0 u8 x 3 | record x n
//! record   tag u8 | 0 u8 x 3 | length u32 | chain u64 | body of `length` bytes
//! chain    XXH3 of body, seeded with XXH3 of (tag, 0, length), seeded with the record before's chain;
//!          the first is seeded with XXH3 of the stream's first 8 bytes
//! ```
//! Little endian. Records come in order of their tag and, within a tag, of their key; each key once:
//!
//! | tag | body |
//! |---|---|
//! | 1 head | codec: id, applied, last command, epoch, slots, dropped tables, marks |
//! | 2 job | codec: job, generation, workers, min clock |
//! | 3 member | codec: job, worker, session without staged parts |
//! | 4 part | job u64, clock u64, epoch u64, worker u32, part u32, payload |
//! | 5 table | codec: schema, values left out |
//! | 6 row | table u32, 0 u32, row u64, changed u64, values |
//! | 7-10 | reserved: held ticks, cuts, blobs (P24), moving slots (P25) |
//! | 255 end | records before it u64, sum of all rows u64 |
//!
//! Because every chain covers all bytes before it, a flipped or missing byte anywhere is found at its record, before
//! anything in it is believed (G9). Equal states give equal bytes.

mod record;
mod restore;
mod write;

pub use restore::{Damaged, Restore};
pub use write::View;
pub(crate) use write::sum_without_rows;
