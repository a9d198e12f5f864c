//! What must hold for every input from outside, and the inputs to test it with (ADR 0014).
//!
//! A [`Target`] is a reader of untrusted bytes with its properties: what it accepts survives a round trip through
//! text or bytes, its errors point into the input, and nothing takes more
//! time or memory than the size of the input justifies. [`TARGETS`] lists all of them, one file each in `targets`.
//!
//! Two programs run them. A [`Campaign`] runs a target's [corpus](corpus::read) and seeded mutations of it
//! on stable Rust: `cargo xtask verify` does that for a fixed number of executions. libFuzzer, in
//! `fuzz/libfuzzer`, is guided by coverage and needs nightly: `cargo xtask fuzz` uses it if it is
//! installed.

pub mod corpus;

mod campaign;
mod failure;
mod journal;
mod mutator;
mod random;
mod target;
mod targets;

pub use campaign::{Budget, Campaign, Report};
pub use failure::Failure;
pub use target::{Target, Verdict};
pub use targets::{TARGETS, target};

/// Runs an input of the target called `name`: the entry point of libFuzzer.
///
/// # Panics
/// When a property does not hold, or there is no such target.
pub fn execute(name: &str, input: &[u8]) {
    let target = target(name).expect("a binary is called like its target");
    (target.check)(input);
}
