//! Tests of the sandbox through its public API, with guests written as WebAssembly text.

#![allow(
    clippy::unwrap_used,
    reason = "clippy knows helpers of tests only inside a cfg(test) module"
)]

mod caching;
mod commands;
mod compiling;
mod ending;
mod example;
mod guests;
mod host;
mod inspecting;
mod limiting;
mod wasi;
mod wasi_calls;
