//! What deleting something by name prints.

use crate::failure::Failure;
use crate::session::Session;
use serde::Serialize;

/// What was to be deleted.
#[derive(Debug, Serialize)]
struct DeletedView {
    name: String,
    deleted: bool,
}

/// Says whether there was something to delete.
pub(super) fn say(session: &Session, name: String, deleted: bool) -> Result<(), Failure> {
    let view = DeletedView { name, deleted };
    session.output.value(&view, |view| {
        let done = if view.deleted {
            "deleted"
        } else {
            "was not there"
        };
        format!("{} {done}", view.name)
    })
}
