//! Why a request was refused, and how that is said on the wire (the conventions of `common.proto`).

mod causes;
mod refusal;
mod status;

pub(crate) use refusal::{Refusal, Violation};
