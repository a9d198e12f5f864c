//! The published forms of responses: their fields are the JSON that scripts read.

mod action;
mod action_run;
mod backup;
mod binding;
mod change;
mod cluster;
mod dead_letter;
mod event;
mod finding;
mod group;
mod info;
mod inspection;
mod json;
mod key;
mod namespace;
mod pending;
mod plan;
mod process;
mod quarantined;
mod quota;
mod record;
mod report;
mod run;
mod run_row;
mod schedule;
mod stream;
mod token;
mod trigger;
mod worker;
mod workflow;

pub(crate) use action::ActionView;
pub(crate) use action_run::{ActionRunRow, ActionRunView};
pub(crate) use backup::{BackupView, bytes};
pub(crate) use binding::{BindingView, BlockView, SubjectView};
pub(crate) use change::ChangeView;
pub(crate) use cluster::ClusterView;
pub(crate) use dead_letter::{DeadLetterRow, DeadLetterView};
pub(crate) use event::EventView;
pub(crate) use finding::FindingView;
pub(crate) use group::GroupView;
pub(crate) use info::InfoView;
pub(crate) use inspection::InspectionView;
pub(crate) use json::is_json;
pub(crate) use key::KeyView;
pub(crate) use namespace::NamespaceView;
pub(crate) use pending::PendingView;
pub(crate) use plan::PlanView;
pub(crate) use quarantined::QuarantinedView;
pub(crate) use quota::QuotaView;
pub(crate) use record::RecordView;
pub(crate) use report::ReportView;
pub(crate) use run::RunView;
pub(crate) use run_row::RunRow;
pub(crate) use schedule::ScheduleView;
pub(crate) use stream::StreamView;
pub(crate) use token::{NewTokenView, TokenView};
pub(crate) use trigger::{TriggerView, TriggersView};
pub(crate) use worker::WorkerView;
pub(crate) use workflow::{RevisionRow, WorkflowRow, WorkflowView};

use flotilla_client::PublishedName;

/// The published name of an enum value; `unknown` for a value of a newer server.
pub(crate) fn name<N: PublishedName>(value: N) -> String {
    value
        .published_name()
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Whether an item is in service or quarantined.
fn service(is_quarantined: bool) -> &'static str {
    if is_quarantined {
        "quarantined"
    } else {
        "active"
    }
}

/// The text, or a dash for `None`.
fn or_dash(text: Option<&str>) -> String {
    text.filter(|text| !text.is_empty())
        .unwrap_or("-")
        .to_owned()
}
