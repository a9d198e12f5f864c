//! The generated pages of the manual: tests compare them, `UPDATE_EXPECT=1` rewrites them.

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
