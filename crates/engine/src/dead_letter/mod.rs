//! Dead-letter queues: one per action, of tasks that failed for good (A6).

mod bury;
mod choice;
mod purge;
mod requeue;

pub use choice::LetterChoice;
pub use purge::PurgeDeadLetters;
pub use requeue::RequeueDeadLetters;

pub(crate) use bury::bury;
