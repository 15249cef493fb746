//! A worker's half of the commit and read protocol: buffers, sequences, cache; pure
