//! How long steps may take: `timeout` and `timeouts` (W70).

use super::{Context, Field, Fields, Reported, duration};
use crate::{Code, Finding};
use flotilla_engine::definition::{RunTarget, Timeouts};
use flotilla_engine::limits::LEASE_MS_MAX;

/// The shortest timeout, in milliseconds.
const MIN_MS: u32 = 1;

/// The fields of a step that say how long it may take.
pub(super) struct TimeoutFields<'doc> {
    text: Option<Field<'doc>>,
    ms: Option<Field<'doc>>,
    block: Option<Field<'doc>>,
}

impl<'doc> TimeoutFields<'doc> {
    pub(super) fn take(fields: &mut Fields<'doc>, context: &mut Context<'doc>) -> Self {
        Self {
            text: fields.take("timeout", context),
            ms: fields.take("timeoutMs", context),
            block: fields.take("timeouts", context),
        }
    }

    /// The field that only run steps and fallbacks can have: `timeouts`.
    pub(super) fn of_calls(&self) -> Option<&Field<'doc>> {
        self.block.as_ref()
    }

    /// All fields that are present. A step that makes no calls and opens no blocks can have none of them.
    pub(super) fn all(&self) -> impl Iterator<Item = &Field<'doc>> {
        [&self.text, &self.ms, &self.block].into_iter().flatten()
    }

    /// Reads how long a step that opens blocks may take, in milliseconds.
    pub(super) fn of_blocks(&self, context: &mut Context<'doc>) -> Result<Option<u64>, Reported> {
        duration::of_wait(self.text.as_ref(), self.ms.as_ref(), MIN_MS, context)
    }

    /// Reads how long the parts of a call may take; `timeout` is that of an attempt.
    pub(super) fn of_call(
        &self,
        target: Option<&RunTarget>,
        context: &mut Context<'doc>,
    ) -> Result<Option<Timeouts>, Reported> {
        let attempt_ms = self.of_blocks(context);
        let block = self.block.as_ref();
        let block = block.map(|field| read(field, target, context)).transpose();
        match (attempt_ms?, block?) {
            (None, block) => Ok(block),
            (
                Some(_),
                Some(Timeouts {
                    attempt_ms: Some(_),
                    ..
                }),
            ) => {
                let span = self.block.as_ref().map(|field| field.key_span);
                let message = "expected `timeout` or `timeouts.attempt`, but both are given";
                Err(context.malformed(span.expect("the block was read"), message))
            }
            (attempt_ms, block) => Ok(Some(Timeouts {
                attempt_ms,
                ..block.unwrap_or_default()
            })),
        }
    }
}

/// Reads a `timeouts` block; `target` is what is called, if that is known.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    target: Option<&RunTarget>,
    context: &mut Context<'doc>,
) -> Result<Timeouts, Reported> {
    let mut fields = field.fields(context)?;
    let attempt = pair(&mut fields, ["attempt", "attemptMs"], context);
    let total = pair(&mut fields, ["total", "totalMs"], context);
    let queue = pair(&mut fields, ["queue", "queueMs"], context);
    let heartbeat = pair(&mut fields, ["heartbeat", "heartbeatMs"], context);
    let known = fields.finish(context);
    let attempt_ms = attempt.read(context);
    let total_ms = total.read(context);
    let queue_ms = queue.read(context);
    let heartbeat_ms = heartbeat
        .read(context)
        .and_then(|ms| within_lease(&heartbeat, ms, context));
    if let Some(RunTarget::Workflow { .. }) = target {
        for field in heartbeat.fields() {
            let hint = "leave it out: no worker takes a child workflow";
            field.warn_without_effect("for a child workflow", hint, context);
        }
    }
    known?;
    Ok(Timeouts {
        attempt_ms: attempt_ms?,
        total_ms: total_ms?,
        queue_ms: queue_ms?,
        heartbeat_ms: heartbeat_ms?,
    })
}

/// The two keys of a timeout: as a text, and in milliseconds.
struct Pair<'doc> {
    text: Option<Field<'doc>>,
    ms: Option<Field<'doc>>,
}

fn pair<'doc>(
    fields: &mut Fields<'doc>,
    [text, ms]: [&'static str; 2],
    context: &mut Context<'doc>,
) -> Pair<'doc> {
    Pair {
        text: fields.take(text, context),
        ms: fields.take(ms, context),
    }
}

impl<'doc> Pair<'doc> {
    fn fields(&self) -> impl Iterator<Item = &Field<'doc>> {
        [&self.text, &self.ms].into_iter().flatten()
    }

    fn read(&self, context: &mut Context<'doc>) -> Result<Option<u64>, Reported> {
        duration::of_wait(self.text.as_ref(), self.ms.as_ref(), MIN_MS, context)
    }
}

/// A heartbeat timeout is the length of a lease, which has a bound.
fn within_lease<'doc>(
    pair: &Pair<'doc>,
    ms: Option<u64>,
    context: &mut Context<'doc>,
) -> Result<Option<u64>, Reported> {
    match (ms, pair.fields().next()) {
        (Some(ms), Some(field)) if ms > LEASE_MS_MAX => {
            let hours = LEASE_MS_MAX / 3_600_000;
            let message = format!("expected {} to be at most {hours} h", field.place);
            Err(context.error(Finding::new(Code::E514, field.span(), message)))
        }
        _ => Ok(ms),
    }
}
