//! Walk-throughs that run
