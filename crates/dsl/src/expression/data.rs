//! Evaluates an expression outside a workflow.

use super::{ExpressionError, Names, Resolved, UnknownName, compile, with_stack};
use flotilla_engine::expression::{Failure, Meter, Node, Stop, Value, Variables, evaluate};
use flotilla_engine::json::Json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// The values of the names in an expression.
#[derive(Clone, Debug, Default)]
pub struct Data {
    names: Vec<String>,
    values: Vec<Json>,
}

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
        let compiled = with_stack(|| compile(text, &mut DataNames(&self.names)))?;
        let mut meter = Meter::default();
        let mut variables = DataVariables {
            values: &self.values,
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

struct DataNames<'d>(&'d [String]);

impl Names for DataNames<'_> {
    fn resolve(&mut self, segments: &[&str]) -> Result<Option<Resolved>, UnknownName> {
        let position = self.0.iter().position(|name| name == segments[0]);
        let position = position.and_then(|position| u16::try_from(position).ok());
        Ok(position.map(|position| Resolved {
            node: Node::Variable(position),
            segments: 1,
        }))
    }

    fn first_segments(&self) -> Vec<String> {
        self.0.to_vec()
    }
}

struct DataVariables<'d> {
    values: &'d [Json],
    /// Each is read once.
    known: BTreeMap<u16, Value>,
}

impl Variables for DataVariables<'_> {
    type Error = Infallible;

    fn variable(&mut self, position: u16, meter: &mut Meter) -> Result<Value, Stop<Infallible>> {
        if let Some(value) = self.known.get(&position) {
            return Ok(value.clone());
        }
        let json = &self.values[usize::from(position)];
        meter.spend_bytes(json.as_str().len())?;
        let value = Value::from_json(json.clone())?;
        self.known.insert(position, value.clone());
        Ok(value)
    }
}
