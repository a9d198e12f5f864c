//! Whether a quota would refuse a command, by a stored state: for nodes, which then need no entry of the log (X40).

use super::check::{Need, ONE_COMMAND, exceeded};
use super::command::is_new_work;
use super::dimension::QuotaDimension;
use crate::command::{Body, Command};
use crate::ids::Namespace;
use crate::quota_rejection::QuotaExceeded;
use crate::request;
use crate::run::StartRun;
use crate::store::{Reader, StoreError};
use crate::tables::{ActionRunKeys, IdempotencyKeys, Requests, RowSource, StoredRows};

/// The quota that would refuse the command at `now_ms`. `None` if none would, if something that exists may answer the command,
/// or if it is refused only by quotas that this function does not foresee: it looks at rates and at what is open.
pub(crate) fn foresee(
    reader: &dyn Reader,
    now_ms: u64,
    command: &Command,
) -> Result<Option<QuotaExceeded>, StoreError> {
    let Some(namespace) = command.scope.namespace() else {
        return Ok(None);
    };
    let mut rows = StoredRows(reader, now_ms);
    if is_answered(&mut rows, namespace, command)? {
        return Ok(None);
    }
    let counts = command.request_id.is_some() && is_new_work(&command.body);
    let mut needs = of_body(&command.body);
    needs.extend(counts.then_some(ONE_COMMAND));
    exceeded(&mut rows, namespace, &needs)
}

/// What the command needs of rates, and of what is open.
fn of_body(body: &Body) -> Vec<Need> {
    let start = [
        (QuotaDimension::StartsPerMinute, 1),
        (QuotaDimension::OpenRuns, 1),
    ];
    if matches!(body, Body::StartRun(_) | Body::RetryRun(_)) {
        return start.to_vec();
    }
    if matches!(body, Body::ResumeRun(_)) {
        return start[1..].to_vec();
    }
    if matches!(body, Body::SignalRun(_)) {
        return vec![(QuotaDimension::SignalsPerMinute, 1)];
    }
    if matches!(body, Body::InvokeAction(_)) {
        return vec![
            (QuotaDimension::InvokesPerMinute, 1),
            (QuotaDimension::OpenActionRuns, 1),
        ];
    }
    Vec::new()
}

/// Whether the command was accepted before, or something that exists may answer it.
fn is_answered(
    rows: &mut StoredRows<'_>,
    namespace: &Namespace,
    command: &Command,
) -> Result<bool, StoreError> {
    if let Some(id) = command.request_id
        && let Some(known) = rows.row::<Requests>(&(command.scope.clone(), id.0))?
        && !request::is_past(known.at_ms, rows.now_ms())
    {
        return Ok(true);
    }
    let run_of = |rows: &mut StoredRows<'_>, start: &StartRun| {
        let Some(key) = &start.idempotency_key else {
            return Ok(false);
        };
        let key = (namespace.clone(), start.workflow.clone(), key.clone());
        Ok(rows.row::<IdempotencyKeys>(&key)?.is_some())
    };
    if let Body::StartRun(start) = &command.body {
        return run_of(rows, start);
    }
    if let Body::RetryRun(retry) = &command.body {
        return run_of(rows, &retry.start);
    }
    if let Body::InvokeAction(invoke) = &command.body
        && let Some(key) = &invoke.idempotency_key
    {
        let key = (namespace.clone(), invoke.name.clone(), key.clone());
        return Ok(rows.row::<ActionRunKeys>(&key)?.is_some());
    }
    // A signal with an id may be a repeated one, and may have reached an earlier attempt at the run.
    Ok(matches!(&command.body, Body::SignalRun(signal) if signal.signal_id.is_some()))
}
