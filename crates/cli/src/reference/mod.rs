//! The pages of the manual that come from the code: tests compare them, `UPDATE_EXPECT=1` rewrites them.

mod blocks;
mod deploy;
mod errors;
mod expression;
mod launch;
mod metrics;
mod verbs;
mod watching;
mod words;

pub(crate) use words::words;
