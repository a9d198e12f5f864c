//! The values of concurrency keys (W84).

use super::render::{self, DataContext, Mapped};
use crate::definition::ConcurrencyLimit;
use crate::digest::sha256_hex;
use crate::expression::{Meter, Value};
use crate::ids::ScopeNumber;
use crate::limits::CONCURRENCY_VALUE_BYTES_MAX;
use crate::message::cut;
use crate::rejection::Rejection;
use crate::start_rejection::StartRejection;
use crate::tables::{ConcurrencyKey, KeySharing};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// The value that a limit's key has for a run; `None` for null, which is not limited.
pub(super) fn resolve(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    limit: &ConcurrencyLimit,
) -> TurnResult<Option<ConcurrencyKey>> {
    let context = DataContext::of(ScopeNumber::ROOT);
    let invalid =
        |reason: &str| Rejection::from(StartRejection::ConcurrencyKeyInvalid(cut(reason)));
    let text = render::text(turn, run, context, &limit.key)?;
    let text = text.map_err(|refused| invalid(&refused.message(Mapped::ConcurrencyKey)))?;
    if text.as_str() == "null" {
        return Ok(None);
    }
    let mut meter = Meter::default();
    let canonical = Value::from_json(text).and_then(|value| value.write_canonical(&mut meter));
    turn.spend_units(meter.spent());
    let canonical = canonical.map_err(|failure| invalid(&failure.to_string()))?;
    let definition = &run.definition.definition;
    Ok(Some(ConcurrencyKey {
        namespace: run.record.namespace.clone(),
        sharing: match &limit.name {
            Some(name) => KeySharing::Named(name.clone()),
            None => KeySharing::Workflow(definition.name.clone()),
        },
        value: bounded(canonical.as_str()),
    }))
}

/// The text itself, or its digest if it is long.
fn bounded(canonical: &str) -> String {
    if canonical.len() <= CONCURRENCY_VALUE_BYTES_MAX {
        return canonical.to_owned();
    }
    format!("sha256:{}", sha256_hex(canonical))
}

/// The key as people see it: its value, and the name under which it is shared.
pub(crate) fn shown(key: &ConcurrencyKey) -> String {
    match &key.sharing {
        KeySharing::Workflow(_) => key.value.clone(),
        KeySharing::Named(name) => format!("{name} {}", key.value),
    }
}
