//! The output of commands that create something by name.

use crate::failure::Failure;
use crate::session::Session;
use serde::Serialize;

/// What was created.
#[derive(Debug, Serialize)]
struct CreatedView {
    name: String,
    created: bool,
}

/// Prints whether it was created or already existed.
pub(super) fn say(session: &Session, name: String, created: bool) -> Result<(), Failure> {
    let view = CreatedView { name, created };
    session.output.value(&view, |view| {
        let done = if view.created {
            "created"
        } else {
            "already exists"
        };
        format!("{} {done}", view.name)
    })
}
