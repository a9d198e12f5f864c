//! Workflows: commands on definitions and versions.

mod create;
mod enable;
mod resolve;

pub use create::CreateDefinition;
pub use enable::SetWorkflowEnabled;
pub(crate) use resolve::{ResolvedDefinition, key_of, newest};
