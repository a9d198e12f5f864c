//! Commands on workflows.

mod create;
mod enable;
mod resolve;

pub use create::CreateDefinition;
pub use enable::SetWorkflowEnabled;
pub(crate) use resolve::{Resolved, key_of, newest, pinned};
