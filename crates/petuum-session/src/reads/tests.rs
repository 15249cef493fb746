//! Tests of what a worker shows to its readers.
