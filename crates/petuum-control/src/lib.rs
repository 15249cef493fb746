//! The control group's state machine and its drivers' decisions; pure
