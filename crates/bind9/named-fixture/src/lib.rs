//! Real named processes for tests.
