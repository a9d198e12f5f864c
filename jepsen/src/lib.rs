//! Chaos tests: real `flo server` processes, clients that write down what they did, faults drawn from
//! a seed, and checkers that judge the history. `jepsen/README.md` tells what the words mean.
//!
//! A [`run`](mod@run) composes [`workload`]s with a [`nemesis`]; the [`checker`]s are pure functions
//! from the [`history`] to what is wrong with it. A [`drill`] is what an operator does, under the same clients; a
//! [`release`] is what the release before has left on disks.

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
