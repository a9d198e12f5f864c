//! Commands on actions, and opening action runs.

mod enable;
mod invoke;
mod open;
mod register;

pub use enable::{DeleteAction, SetActionEnabled};
pub use invoke::InvokeAction;
pub use register::RegisterAction;

pub(crate) use open::{ActionInput, Opening, Owner, PRIORITY_DEFAULT, open};
