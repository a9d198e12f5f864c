//! The values of targets and locks (W85).

use super::exclusion::{GivenExclusion, PreparedLocks};
use super::render::{self, DataContext, Mapped};
use crate::definition::{LockSource, Template};
use crate::digest::sha256;
use crate::expression::{Failure, Meter, Value};
use crate::ids::ScopeNumber;
use crate::json::Json;
use crate::limits::{LOCK_PATTERN_BYTES_MAX, TARGET_BYTES_MAX};
use crate::message::cut;
use crate::rejection::Rejection;
use crate::start_rejection::StartRejection;
use crate::tables::RunTargetValue;
use crate::turn::{LoadedRun, Turn, TurnResult};

/// The target of a new run, if it has one.
pub(super) fn target(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    given: &GivenExclusion,
) -> TurnResult<Option<RunTargetValue>> {
    let definition = run.definition.clone();
    let text = match (&given.target, &definition.definition.target) {
        (Some(given), _) => given.clone(),
        (None, None) => return Ok(None),
        (None, Some(template)) => {
            let value = value(turn, run, template, Mapped::Target)?;
            match value.map_err(target_invalid)? {
                Value::Null => return Ok(None),
                Value::String(text) => text.to_string(),
                value => canonical(turn, &value)
                    .map_err(|failure| target_invalid(failure.to_string()))?,
            }
        }
    };
    if text.len() > TARGET_BYTES_MAX {
        let bytes = text.len();
        let reason = format!("it has {bytes} bytes, more than {TARGET_BYTES_MAX}");
        return Err(target_invalid(reason).into());
    }
    let input = turn.payload(run.record.input)?;
    let input = Value::from_json(input).map_err(|failure| not_compared(&failure))?;
    let input = canonical(turn, &input).map_err(|failure| not_compared(&failure))?;
    // The text ends where its closing quotation mark is, so no two pairs give the same bytes.
    let digest = sha256(format!("{}{input}", Json::string(&text).as_str()));
    Ok(Some(RunTargetValue { text, digest }))
}

fn target_invalid(reason: String) -> Rejection {
    StartRejection::TargetInvalid(cut(&reason)).into()
}

fn locks_invalid(reason: String) -> Rejection {
    StartRejection::LocksInvalid(cut(&reason)).into()
}

/// The rejection of an input that cannot be compared with that of other runs.
fn not_compared(failure: &Failure) -> Rejection {
    target_invalid(format!("the input cannot be compared: {failure}"))
}

/// The canonical JSON text of a value.
fn canonical(turn: &mut Turn<'_, '_>, value: &Value) -> Result<String, Failure> {
    let mut meter = Meter::default();
    let canonical = value.write_canonical(&mut meter);
    turn.spend_units(meter.spent());
    Ok(canonical?.as_str().to_owned())
}

/// The locks of a new run, each once.
pub(super) fn locks(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    given: &GivenExclusion,
) -> TurnResult<PreparedLocks> {
    if let Some(given) = &given.locks {
        let mut locks = given.clone();
        locks.sort_by(|one, other| one.pattern.cmp(&other.pattern));
        locks.dedup_by(|one, other| one.pattern == other.pattern);
        return Ok(PreparedLocks::Compiled(locks));
    }
    let definition = run.definition.clone();
    let mut literal = Vec::new();
    let mut patterns: Vec<String> = Vec::new();
    for source in &definition.definition.locks {
        let pattern = match source {
            LockSource::Literal(lock) if patterns.contains(&lock.pattern) => continue,
            LockSource::Literal(lock) => {
                literal.push(lock.clone());
                lock.pattern.clone()
            }
            LockSource::Computed(template) => match pattern(turn, run, template)? {
                Some(pattern) => pattern,
                None => continue,
            },
        };
        if !patterns.contains(&pattern) {
            patterns.push(pattern);
        }
    }
    let is_all_literal = literal.len() == patterns.len();
    Ok(match is_all_literal {
        true => PreparedLocks::Compiled(literal),
        false => PreparedLocks::Patterns(patterns),
    })
}

/// The pattern of a computed lock; `None` if it is null.
fn pattern(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    template: &Template,
) -> TurnResult<Option<String>> {
    let value = value(turn, run, template, Mapped::Lock)?;
    let pattern = match value.map_err(locks_invalid)? {
        Value::Null => return Ok(None),
        Value::String(pattern) => pattern.to_string(),
        other => {
            let kind = other.kind().name();
            let reason = format!("a lock is of type {kind}, not a string");
            return Err(locks_invalid(reason).into());
        }
    };
    if pattern.len() > LOCK_PATTERN_BYTES_MAX {
        let bytes = pattern.len();
        let reason = format!("a lock has {bytes} bytes, more than {LOCK_PATTERN_BYTES_MAX}");
        return Err(locks_invalid(reason).into());
    }
    Ok(Some(pattern))
}

/// A computed value, or why there is none.
fn value(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    template: &Template,
    what: Mapped,
) -> TurnResult<Result<Value, String>> {
    let context = DataContext::of(ScopeNumber::ROOT);
    let text = render::text(turn, run, context, template)?;
    Ok(text
        .map_err(|refused| refused.message(what))
        .and_then(|text| Value::from_json(text).map_err(|failure| failure.to_string())))
}
