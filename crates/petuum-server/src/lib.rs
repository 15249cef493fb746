//! A node: services, placement, admission limits
