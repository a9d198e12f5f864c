//! Tasks: the attempts of action runs, from ready to reported (A4, A5).

mod accept;
mod assign;
mod complete;
mod end;
mod fail;
mod label_queue;
mod lease;
mod loaded;
mod queue;
mod ready;
mod report;
mod take_up;
mod token;
mod touch;

pub use accept::AcceptTask;
pub use assign::AssignTasks;
pub use complete::CompleteTask;
pub use fail::{FailKind, FailTask, FailureOutcome};
pub use report::ReportTask;
pub use token::{TaskToken, TokenInvalid};
pub use touch::TouchTask;

pub(crate) use end::cancel;
pub(crate) use label_queue::open as open_label_queue;
pub(crate) use lease::{expire, release};
pub(crate) use ready::{make_ready, make_ready_after, wake};
pub(crate) use report::expire_report;
pub(crate) use take_up::{take_up, take_up_own};
