//! openraft's configuration: our types and timing. Only this crate uses openraft.

pub(crate) mod config;
pub(crate) mod type_config;
