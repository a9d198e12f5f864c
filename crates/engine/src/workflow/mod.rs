//! Workflows: commands on definitions and versions.

mod create;
mod delete;
mod enable;
mod resolve;

pub use create::CreateDefinition;
pub use delete::DeleteWorkflow;
pub use enable::SetWorkflowEnabled;
pub(crate) use resolve::{ResolvedDefinition, key_of, newest};
