//! The output of commands that change what a subject may do.

use crate::commands::descendants::Descent;
use crate::failure::Failure;
use crate::session::Session;
use serde::Serialize;

#[derive(Debug, Serialize)]
struct ChangedView {
    subject: String,
    change: &'static str,
}

#[derive(Debug, Serialize)]
struct EndedView {
    subject: String,
    change: &'static str,
    #[serde(flatten)]
    descent: Descent,
}

/// Prints what was done with the subject.
pub(super) fn say(session: &Session, subject: String, change: &'static str) -> Result<(), Failure> {
    let view = ChangedView { subject, change };
    session
        .output
        .value(&view, |view| format!("{} {}", view.subject, view.change))
}

/// Prints what was done with the subject, and with the credentials that it has created.
pub(super) fn say_ended(
    session: &Session,
    (subject, change): (String, &'static str),
    descent: Descent,
) -> Result<(), Failure> {
    let view = EndedView {
        subject,
        change,
        descent,
    };
    session.output.value(&view, |view| {
        let mut lines = vec![format!("{} {}", view.subject, view.change)];
        lines.extend(view.descent.lines());
        lines.join("\n")
    })
}
