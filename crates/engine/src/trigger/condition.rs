//! Which records a trigger takes: its `when` (W93).

use crate::definition::{Trigger, Variable};
use crate::expression::{Failure, Key, Meter, Stop, Value, Variables, evaluate};
use crate::json::Json;
use crate::stream::RecordId;
use crate::tables::RecordContent;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// A record that a trigger may take.
#[derive(Clone, Copy)]
pub(crate) struct Candidate<'r> {
    pub(crate) id: RecordId,
    pub(crate) partition: u32,
    pub(crate) content: &'r RecordContent,
    /// Whether its payload is JSON.
    pub(crate) is_json: bool,
}

/// What a trigger's condition says of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It starts a run.
    Taken,
    /// It does not: the condition is false.
    Skipped,
    /// The condition is neither true nor false, for this reason.
    Failed(String),
}

impl Candidate<'_> {
    /// What the trigger's condition says of it. The cost is added to the meter.
    pub(crate) fn judge(&self, trigger: &Trigger, meter: &mut Meter) -> Verdict {
        let Some(when) = &trigger.when else {
            return Verdict::Taken;
        };
        let mut variables = RecordVariables {
            candidate: self,
            variables: &when.variables,
        };
        let failure = match evaluate(&when.compiled, &mut variables, meter) {
            Ok(Value::Bool(true)) => return Verdict::Taken,
            Ok(Value::Bool(false)) => return Verdict::Skipped,
            Ok(other) => Failure::not_a_bool(&other),
            Err(Stop::Failed(failure)) => failure,
        };
        Verdict::Failed(failure.of_expression(&when.text))
    }

    /// `record`: an object with `id`, `partition`, `key`, `headers` and `payload`.
    fn value(&self, meter: &mut Meter) -> Result<Value, Failure> {
        let content = self.content;
        meter.spend_bytes(usize::try_from(content.size()).unwrap_or(usize::MAX))?;
        let text = |text: &str| Value::String(text.into());
        let named = |name: &str| Key::String(name.into());
        let headers = content.headers.iter();
        let headers = headers.map(|(name, value)| (named(name), text(value)));
        let payload = String::from_utf8_lossy(&content.payload);
        let payload = match self.is_json {
            true => Value::from_json(Json::from_checked(payload))?,
            false => text(&payload),
        };
        let key = content.key.as_ref();
        let entries: [(&str, Value); 5] = [
            ("id", text(&self.id.to_string())),
            ("partition", Value::Int(self.partition.into())),
            ("key", key.map_or(Value::Null, |key| text(key.as_str()))),
            ("headers", Value::map(headers.collect())),
            ("payload", payload),
        ];
        let entries = entries.map(|(name, value)| (named(name), value));
        Ok(Value::map(BTreeMap::from(entries)))
    }
}

/// The variables of a condition.
struct RecordVariables<'v, 'r> {
    candidate: &'v Candidate<'r>,
    variables: &'v [Variable],
}

impl Variables for RecordVariables<'_, '_> {
    type Error = Infallible;

    fn variable(&mut self, position: u16, meter: &mut Meter) -> Result<Value, Stop<Infallible>> {
        match self.variables[usize::from(position)] {
            Variable::Record => Ok(self.candidate.value(meter)?),
            // There is no run yet.
            Variable::Root(_) | Variable::Now | Variable::Attempt => Ok(Value::Null),
        }
    }
}
