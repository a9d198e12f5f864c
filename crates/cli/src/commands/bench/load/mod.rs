//! The load generator: repeats an operation at a given pace and measures its latency.

mod connections;
mod drive;
mod flags;
mod meter;
mod pacer;
mod schedule;
mod work;

pub(super) use connections::Connections;
pub(super) use drive::{Load, drive, stopped};
pub(super) use flags::{LoadFlags, Pace};
pub(super) use meter::{Measured, Meter};
pub(super) use work::{Piece, Work};
