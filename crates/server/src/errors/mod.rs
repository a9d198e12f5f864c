//! Refusals of requests and their form on the wire (the conventions of `common.proto`).

mod catalogue;
mod causes;
mod http_status;
mod reason;
mod refusal;
mod status;

pub use catalogue::ErrorCode;
pub(crate) use http_status::http_status;
pub(crate) use reason::ServerCode;
pub(crate) use refusal::{Refusal, Violation};
pub(crate) use status::{CLUSTER_MS, HINT, QUOTA_DIMENSION, QUOTA_LIMIT, QUOTA_SCOPE, QUOTA_USED};
