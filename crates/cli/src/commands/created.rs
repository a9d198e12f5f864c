//! What creating something by name prints.

use crate::failure::Failure;
use crate::session::Session;
use serde::Serialize;

/// What was to be created.
#[derive(Debug, Serialize)]
struct CreatedView {
    name: String,
    created: bool,
}

/// Says whether it is new.
pub(super) fn say(session: &Session, name: String, created: bool) -> Result<(), Failure> {
    let view = CreatedView { name, created };
    session.output.value(&view, |view| {
        let done = if view.created {
            "created"
        } else {
            "was there already"
        };
        format!("{} {done}", view.name)
    })
}
