//! Workflows: commands on definitions and versions.

mod create;
mod delete;
mod enable;
mod resolve;
mod version_choice;

pub use create::CreateDefinition;
pub use delete::DeleteWorkflow;
pub use enable::SetWorkflowEnabled;
pub(crate) use resolve::{ResolvedDefinition, key_of, newest};
pub use version_choice::VersionChoice;
