//! The output of commands that change what a subject may do.

use crate::failure::Failure;
use crate::session::Session;
use serde::Serialize;

#[derive(Debug, Serialize)]
struct ChangedView {
    subject: String,
    change: &'static str,
}

/// Prints what was done with the subject.
pub(super) fn say(session: &Session, subject: String, change: &'static str) -> Result<(), Failure> {
    let view = ChangedView { subject, change };
    session
        .output
        .value(&view, |view| format!("{} {}", view.subject, view.change))
}
