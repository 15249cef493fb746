//! Scenarios, model check and runner for the simulator
