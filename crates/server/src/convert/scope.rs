//! Converts the scopes of runs to messages.

use flotilla_api::v1;
use flotilla_engine::view::{ScopeKind, ScopeStatus, ScopeView};

/// Converts a scope, with those in it.
pub(super) fn message(view: ScopeView) -> v1::Scope {
    let progress = view.progress;
    let (status, outcome) = match view.status {
        ScopeStatus::Running => (v1::ScopeStatus::Running, None),
        ScopeStatus::Waiting => (v1::ScopeStatus::Waiting, None),
        ScopeStatus::Cancelling => (v1::ScopeStatus::Cancelling, None),
        ScopeStatus::Ended(outcome) => (v1::ScopeStatus::Ended, Some(outcome)),
    };
    v1::Scope {
        path: view.path,
        kind: kind(view.kind).into(),
        status: status.into(),
        outcome,
        done: progress.map(|progress| progress.done_count),
        total: progress.map(|progress| progress.total_count),
        failed: progress.map(|progress| progress.failed_count),
        scopes: view.scopes.into_iter().map(message).collect(),
        omitted: view.omitted_count,
    }
}

fn kind(kind: ScopeKind) -> v1::ScopeKind {
    match kind {
        ScopeKind::Root => v1::ScopeKind::Root,
        ScopeKind::Branch => v1::ScopeKind::Branch,
        ScopeKind::Item => v1::ScopeKind::Item,
        ScopeKind::Block => v1::ScopeKind::Block,
        ScopeKind::Handler => v1::ScopeKind::Handler,
    }
}
