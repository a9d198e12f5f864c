//! Reads quarantined items by their published names (design rule 10).

use super::page::{Page, PageRange, Scope, page, prefix};
use super::run::find_run;
use crate::ids::{
    ActionRunNumber, GroupNumber, Namespace, PlanNumber, RunId, RunNumber, StreamNumber,
    WorkerNumber,
};
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    ActionRuns, DefinitionNumber, Definitions, GoneWorkers, Groups, PlanNumbers, Quarantine,
    QuarantineRecord, QuarantinedItem, QuarantinedKind, Runs, Streams, WorkerNumbers,
    encode_prefix, read, visit,
};
use std::ops::ControlFlow;

/// A quarantined item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuarantinedView {
    /// The item's kind and number, which [`ReleaseQuarantined`](crate::ReleaseQuarantined) takes.
    pub subject: QuarantinedItem,
    /// Its namespace; `None` if the item no longer exists.
    pub namespace: Option<Namespace>,
    /// Its published name: the id of a run, an action run or a worker, the workflow of a schedule or trigger, a stream,
    /// `STREAM/GROUP`, `WORKFLOW/PLAN`; its number if the item no longer exists.
    pub name: String,
    /// When, in milliseconds, and where in the log.
    pub record: QuarantineRecord,
}

impl QuarantinedView {
    /// Whether the item has this published name.
    fn is_called(&self, namespace: &Namespace, name: &str) -> bool {
        self.name == name && self.namespace.as_ref().is_none_or(|own| own == namespace)
    }
}

/// The quarantined items, by kind and number.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn quarantined(
    reader: &dyn Reader,
    range: PageRange<'_>,
) -> Result<Page<QuarantinedView>, StoreError> {
    let prefix = prefix::<Quarantine>(&());
    let scope = Scope::new(&prefix, range);
    page::<Quarantine, _>(reader, &scope, |reader, subject, record| {
        describe(reader, subject, record).map(Some)
    })
}

/// The quarantined items with this published name. Mostly one, but the schedules of two revisions of a workflow share a
/// name, and so do a deleted stream and its successor.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn find_quarantined(
    reader: &dyn Reader,
    kind: QuarantinedKind,
    namespace: &Namespace,
    name: &str,
) -> Result<Vec<QuarantinedView>, StoreError> {
    // There may be many runs: they are not scanned.
    let number = match kind {
        QuarantinedKind::Run => match RunId::new(name) {
            Ok(run_id) => find_run(reader, namespace, &run_id)?.map(|(number, _)| number.0),
            Err(_) => None,
        },
        QuarantinedKind::ActionRun => ActionRunNumber::from_id(name).map(|number| number.0),
        QuarantinedKind::Worker
        | QuarantinedKind::Schedule
        | QuarantinedKind::Stream
        | QuarantinedKind::Group
        | QuarantinedKind::Trigger
        | QuarantinedKind::Plan => return look_through(reader, kind, namespace, name),
    };
    let Some(number) = number.or_else(|| name.parse().ok()) else {
        return Ok(Vec::new());
    };
    let subject = (kind, number);
    let record = read::<Quarantine>(reader, &subject)?;
    let found = record.map(|record| describe(reader, subject, record));
    let found = found.transpose()?.into_iter();
    Ok(found.filter(|one| one.is_called(namespace, name)).collect())
}

fn look_through(
    reader: &dyn Reader,
    kind: QuarantinedKind,
    namespace: &Namespace,
    name: &str,
) -> Result<Vec<QuarantinedView>, StoreError> {
    let mut found = Vec::new();
    let mut failure = None;
    let range = KeyRange::prefix(&encode_prefix::<Quarantine>(&kind));
    visit::<Quarantine>(reader, &range, Order::Ascending, |subject, record| {
        match describe(reader, subject, record) {
            Ok(one) => found.extend(Some(one).filter(|one| one.is_called(namespace, name))),
            Err(error) => failure = Some(error),
        }
        match failure {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    })?;
    failure.map_or(Ok(found), Err)
}

fn describe(
    reader: &dyn Reader,
    subject: QuarantinedItem,
    record: QuarantineRecord,
) -> Result<QuarantinedView, StoreError> {
    let (namespace, name) = match name(reader, subject)? {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, subject.1.to_string()),
    };
    Ok(QuarantinedView {
        subject,
        namespace,
        name,
        record,
    })
}

/// The namespace and published name of an item; `None` if it no longer exists.
fn name(
    reader: &dyn Reader,
    (kind, number): QuarantinedItem,
) -> Result<Option<(Namespace, String)>, StoreError> {
    Ok(match kind {
        QuarantinedKind::Run => {
            let run = read::<Runs>(reader, &RunNumber(number))?;
            run.map(|run| (run.namespace, run.id.to_string()))
        }
        QuarantinedKind::ActionRun => {
            let number = ActionRunNumber(number);
            let record = read::<ActionRuns>(reader, &number)?;
            record.map(|record| (record.namespace, number.to_string()))
        }
        QuarantinedKind::Worker => {
            let number = WorkerNumber(number);
            let worker = match read::<WorkerNumbers>(reader, &number)? {
                Some(worker) => Some(worker),
                None => {
                    read::<GoneWorkers>(reader, &number)?.map(|gone| (gone.namespace, gone.worker))
                }
            };
            worker.map(|(namespace, worker_id)| (namespace, worker_id.to_string()))
        }
        QuarantinedKind::Schedule | QuarantinedKind::Trigger => {
            let revision = read::<Definitions>(reader, &DefinitionNumber(number))?;
            revision.map(|revision| (revision.namespace, revision.definition.name.to_string()))
        }
        QuarantinedKind::Stream => {
            let stream = read::<Streams>(reader, &StreamNumber(number))?;
            stream.map(|stream| (stream.namespace, stream.name.to_string()))
        }
        QuarantinedKind::Group => {
            let Some(group) = read::<Groups>(reader, &GroupNumber(number))? else {
                return Ok(None);
            };
            let stream = read::<Streams>(reader, &group.stream)?;
            stream.map(|stream| (stream.namespace, format!("{}/{}", stream.name, group.name)))
        }
        QuarantinedKind::Plan => {
            let plan = read::<PlanNumbers>(reader, &PlanNumber(number))?;
            plan.map(|(namespace, workflow, plan)| (namespace, format!("{workflow}/{plan}")))
        }
    })
}
