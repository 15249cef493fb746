//! Checks on the project's own shape, run as tests
