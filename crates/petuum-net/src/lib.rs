//! Wire types, conversions and the seams for listeners and connectors
