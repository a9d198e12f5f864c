//! The access mode, as commands show and set it.

use crate::failure::Failure;
use crate::session::Session;
use flotilla_client::v1::{AccessMode, SetAccessRequest};
use serde::Serialize;

#[derive(Debug, Serialize)]
struct AccessView {
    mode: &'static str,
    revision: u64,
}

/// The published name of a mode.
pub(super) fn name(mode: AccessMode) -> &'static str {
    match mode {
        AccessMode::Open => "open",
        AccessMode::Closed => "closed",
        AccessMode::Unspecified => "unknown",
    }
}

/// Opens or closes the cluster, and prints its mode.
pub(super) async fn set(session: &Session, mode: AccessMode) -> Result<(), Failure> {
    let request = SetAccessRequest {
        mode: mode.into(),
        ..SetAccessRequest::default()
    };
    let access = session.client()?.set_access(request).await?;
    let view = AccessView {
        mode: name(access.mode()),
        revision: access.revision,
    };
    session
        .output
        .value(&view, |view| format!("the cluster is {}", view.mode))
}
