//! Evaluates an expression outside a workflow.

use super::{ExpressionError, Names, Resolved, UnknownName, compile, with_stack};
use flotilla_engine::expression::{
    Failure, Meter, Node, Stop, Timestamp, Value, Variables, evaluate,
};
use flotilla_engine::json::Json;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The values of the names in an expression.
#[derive(Clone, Debug, Default)]
pub struct Data {
    names: Vec<String>,
    values: Vec<Json>,
    /// The time of `flo.timestamp`, which is also `flo.now`, as in a run.
    now: Option<Timestamp>,
}

/// The variable for `flo.now`; the others are the positions of the names.
const NOW: u16 = u16::MAX;

/// The result of an evaluation.
#[derive(Debug)]
pub struct Evaluated {
    /// The value, or why there is none.
    pub value: Result<Value, Failure>,
    /// The cost, in units of W64.
    pub cost: u32,
}

impl Data {
    /// Reads a JSON object: each key is a name.
    ///
    /// # Errors
    /// If the text is not a JSON object.
    pub fn parse(json: &str) -> Result<Self, serde_json::Error> {
        let data: BTreeMap<String, &RawValue> = serde_json::from_str(json)?;
        let mut parsed = Self::default();
        for (name, value) in data {
            if name == "flo" {
                parsed.now = time_of(value);
            }
            parsed.names.push(name);
            parsed.values.push(Json::from_checked(value.get()));
        }
        Ok(parsed)
    }

    /// Evaluates an expression over these values.
    ///
    /// # Errors
    /// If the expression is invalid.
    pub fn evaluate(&self, text: &str) -> Result<Evaluated, ExpressionError> {
        let compiled = with_stack(|| compile(text, &mut DataNames(self)))?;
        let mut meter = Meter::default();
        let mut variables = DataVariables {
            data: self,
            known: BTreeMap::new(),
        };
        let value = evaluate(&compiled.expression, &mut variables, &mut meter);
        let value = value.map_err(|stop| match stop {
            Stop::Failed(failure) => failure,
            Stop::Variables(never) => match never {},
        });
        Ok(Evaluated {
            value,
            cost: meter.spent(),
        })
    }
}

/// The time that the value of `flo` gives.
fn time_of(flo: &RawValue) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Flo {
        timestamp: u64,
    }
    let flo: Flo = serde_json::from_str(flo.get()).ok()?;
    Some(Timestamp::from_millis(flo.timestamp))
}

struct DataNames<'d>(&'d Data);

impl Names for DataNames<'_> {
    fn resolve(&mut self, segments: &[&str]) -> Result<Option<Resolved>, UnknownName> {
        if let (["flo", "now", ..], Some(_)) = (segments, self.0.now) {
            return Ok(Some(Resolved {
                node: Node::Variable(NOW),
                segments: 2,
            }));
        }
        let position = self.0.names.iter().position(|name| name == segments[0]);
        let position = position.and_then(|position| u16::try_from(position).ok());
        let position = position.filter(|position| *position != NOW);
        Ok(position.map(|position| Resolved {
            node: Node::Variable(position),
            segments: 1,
        }))
    }

    fn first_segments(&self) -> Vec<String> {
        self.0.names.clone()
    }
}

struct DataVariables<'d> {
    data: &'d Data,
    /// Each is read once.
    known: BTreeMap<u16, Value>,
}

impl Variables for DataVariables<'_> {
    type Error = Infallible;

    fn variable(&mut self, position: u16, meter: &mut Meter) -> Result<Value, Stop<Infallible>> {
        if let (NOW, Some(now)) = (position, self.data.now) {
            return Ok(Value::Timestamp(now));
        }
        if let Some(value) = self.known.get(&position) {
            return Ok(value.clone());
        }
        let json = &self.data.values[usize::from(position)];
        meter.spend_bytes(json.as_str().len())?;
        let value = Value::from_json(json.clone())?;
        self.known.insert(position, value.clone());
        Ok(value)
    }
}
