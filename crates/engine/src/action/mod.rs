//! Actions: commands, and the creation of action runs.

mod cancel;
mod create;
mod enable;
mod forget;
mod invoke;
mod register;

pub use cancel::CancelActionRun;
pub use enable::{DeleteAction, SetActionEnabled};
pub use invoke::InvokeAction;
pub use register::RegisterAction;

pub(crate) use create::{ActionInput, NewActionRun, Owner, PRIORITY_DEFAULT, create};
pub(crate) use forget::forget;
