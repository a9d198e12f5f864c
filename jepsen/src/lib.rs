//! Chaos tests: real `flo server` processes, clients that record their calls, faults drawn from
//! a seed, and checkers that judge the history. `jepsen/README.md` defines the terms.
//!
//! A [`run`](mod@run) combines [`workload`]s with a [`nemesis`]; the [`checker`]s are pure functions
//! from the [`history`] to its violations. A [`drill`] is an operator's procedure, under the same clients; a
//! [`release`] is the data of the previous release.

pub mod abuse;
pub mod checker;
pub mod drill;
pub mod history;
pub mod nemesis;
mod network;
pub mod planted;
pub mod release;
pub mod report;
pub mod run;
mod stage;
pub mod workload;
