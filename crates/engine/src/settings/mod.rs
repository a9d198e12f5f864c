//! The settings of the cluster (A42).

mod set;

pub use set::SetClusterSettings;
