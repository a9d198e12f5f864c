//! Commands on namespaces, and their creation by the first write (A41).

mod create;
mod delete;

pub use create::CreateNamespace;
pub use delete::DeleteNamespace;

pub(crate) use create::follow;
