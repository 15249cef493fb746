//! Numeric kernels: apply, merge and initial values, bit-equal on every CPU
