//! Tasks: the attempts of action runs, from ready to ended (A4, A5).

mod accept;
mod assign;
mod cancel;
mod complete;
mod end;
mod expire;
mod fail;
mod info;
mod label_queue;
mod lease;
mod loaded;
mod queue;
mod ready;
mod release;
mod report;
mod token;
mod touch;
mod tracking;
mod usage;
mod wait;

pub use accept::AcceptTask;
pub use assign::AssignTasks;
pub use complete::CompleteTask;
pub use fail::{FailKind, FailTask, FailureOutcome};
pub use info::AddTaskInfo;
pub use report::{ReportTask, TaskReport};
pub use token::{TaskToken, TokenInvalid};
pub use touch::TouchTask;

pub(crate) use cancel::{CancelMode, cancel, cancel_stand_alone};
pub(crate) use expire::{expire, expire_report, expire_wait, lose, release};
pub(crate) use label_queue::{has_room as has_label_queue, open as open_label_queue};
pub(crate) use loaded::LoadedTask;
pub(crate) use ready::{make_ready, make_ready_after, wake};
pub(crate) use release::{release_from_quarantine, release_stand_alone};
pub(crate) use report::{end_accepted, is_report_awaited};
pub(crate) use tracking::tracking_of;
