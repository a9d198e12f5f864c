//! The output of commands that delete something by name.

use crate::failure::Failure;
use crate::session::Session;
use serde::Serialize;

/// What was deleted.
#[derive(Debug, Serialize)]
struct DeletedView {
    name: String,
    deleted: bool,
}

/// Prints whether it existed.
pub(super) fn say(session: &Session, name: String, deleted: bool) -> Result<(), Failure> {
    let view = DeletedView { name, deleted };
    session.output.value(&view, |view| {
        let done = if view.deleted {
            "deleted"
        } else {
            "did not exist"
        };
        format!("{} {done}", view.name)
    })
}
