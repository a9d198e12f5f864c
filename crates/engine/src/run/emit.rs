//! Steps that append a record to a stream (W62).

use super::failure::failed;
use super::outcome::name;
use super::render::{self, DataContext, Mapped};
use crate::bytes::Bytes;
use crate::definition::EmitStep;
use crate::ids::PartitionKey;
use crate::json::{Json, as_string, quote};
use crate::store::StoreError;
use crate::stream::{self, Emission, NewRecord, RecordId};
use crate::tables::{Activation, EventKind, TargetResult};
use crate::turn::{Abort, LoadedRun, Turn, TurnResult};
use std::collections::BTreeMap;

/// Appends the record of a step, and returns what the step ends with.
pub(super) fn emit(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    step: &EmitStep,
) -> TurnResult<TargetResult> {
    let record = match record(turn, run, active, step)? {
        Ok(record) => record,
        Err(ended) => return Ok(ended),
    };
    let emission = Emission {
        namespace: &run.record.namespace,
        stream: &step.stream,
        record,
        hops: run.record.hops.saturating_add(1),
    };
    let id = match stream::emit(turn, &emission) {
        Ok(id) => id,
        Err(Abort::Rejected(rejection)) => {
            let code = rejection.code().as_str();
            return Ok(failed(turn, run, code, rejection.to_string()));
        }
        Err(Abort::Store(error)) => return Err(Abort::Store(error)),
    };
    let stream = step.stream.clone();
    run.note(active, EventKind::RecordEmitted { stream, id });
    let output = run.store_payload(turn, output(step, id));
    Ok(TargetResult {
        output: Some(output),
        ..TargetResult::of_engine(name::of(name::SUCCESS))
    })
}

/// The record, from the mappings of the step; the error is what the step ends with.
fn record(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    step: &EmitStep,
) -> Result<Result<NewRecord, TargetResult>, StoreError> {
    let context = DataContext::of(active.scope);
    let mut texts = Vec::new();
    for template in step.key.iter().chain([&step.payload]) {
        match render::text(turn, run, context, template)? {
            Ok(text) => texts.push(text),
            Err(refused) => return Ok(Err(refused.ends_step(turn, run, Mapped::Record))),
        }
    }
    let payload = texts.pop().expect("the payload was rendered");
    Ok(match texts.pop().map_or(Ok(None), |text| key(&text)) {
        Ok(key) => Ok(NewRecord {
            payload: Bytes::from(payload.as_str()),
            headers: BTreeMap::new(),
            key,
            partition: None,
        }),
        Err(message) => Err(failed(turn, run, "bad_key", message)),
    })
}

/// The partition key that a value is: a text, or none if it is null.
fn key(value: &Json) -> Result<Option<PartitionKey>, String> {
    if *value == Json::null() {
        return Ok(None);
    }
    let text = as_string(value.as_str());
    let text =
        text.ok_or("expected the key of the record to be a string or null, but it is not")?;
    let key = PartitionKey::new(text).map_err(|invalid| invalid.to_string())?;
    Ok(Some(key))
}

fn output(step: &EmitStep, id: RecordId) -> Json {
    let mut text = String::from("{\"stream\":");
    quote(step.stream.as_str(), &mut text);
    text.push_str(",\"id\":");
    quote(&id.to_string(), &mut text);
    text.push('}');
    Json::from_checked(text)
}
