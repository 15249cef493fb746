//! Measurements, as ratios within one run or beside what the machine can do at the same time.
//!
//! `make bench` builds them as users would build the product. Each prints one line per figure, with the median and what
//! it is to be compared with; none is part of a test.

pub mod etcd;
pub mod load;
pub mod nodes;
pub mod reads;
pub mod statistics;
