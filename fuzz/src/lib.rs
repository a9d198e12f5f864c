//! What must hold for every input that comes from outside, and the inputs to try it with (ADR 0014).
//!
//! A [`Target`] is a reader of untrusted bytes and its properties: what it accepts survives the way to
//! text or bytes and back, what it says about a mistake points into the input, and nothing takes more
//! time or room than the input pays for. [`TARGETS`] is the table of all, one file each in `targets`.
//!
//! Two things try them. A [`Campaign`] runs a target's [corpus](corpus::read) and seeded mutations of it,
//! on stable Rust: what `cargo xtask verify` does for a fixed number of executions. libFuzzer, in
//! `fuzz/libfuzzer`, is guided by coverage and needs nightly: what `cargo xtask fuzz` does where it is
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

/// Gives an input to the target called `name`: libFuzzer's way in.
///
/// # Panics
/// When a property does not hold, or there is no such target.
pub fn execute(name: &str, input: &[u8]) {
    let target = target(name).expect("a binary is called like its target");
    (target.check)(input);
}
