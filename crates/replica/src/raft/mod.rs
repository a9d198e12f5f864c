//! What openraft is told about our types and timing; it is seen by this crate only.

pub(crate) mod config;
pub(crate) mod type_config;
