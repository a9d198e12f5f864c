//! Dead-letter queues: one per action, for action runs that failed permanently (A6).

mod add;
mod purge;
mod requeue;
mod selector;

pub use purge::PurgeDeadLetters;
pub use requeue::RequeueDeadLetters;
pub use selector::DeadLetterSelector;

pub(crate) use add::add;
