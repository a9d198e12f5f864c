//! The rows of the state, as the engine stores them: for tests, the simulation, the fuzz targets and the benchmarks,
//! which compare whole states and make damaged ones.
//!
//! Production code outside the engine reads the state through [`view`](crate::view), so that a table can change without
//! it; `cargo xtask tidy` checks that.

pub use crate::tables::*;
