//! Evaluates expressions over the data of a run (W64).

use super::render::{self, DataContext};
use crate::definition::{Expression, Variable};
use crate::expression::{Failure, Meter, Stop, Timestamp, Value, Variables, evaluate};
use crate::json::Json;
use crate::store::StoreError;
use crate::turn::{LoadedRun, Turn};

/// An evaluation of one or several expressions, which together cost at most as much as one may. Each variable is read
/// once.
pub(super) struct Evaluation {
    context: DataContext,
    known: Vec<(Variable, Value)>,
    meter: Meter,
}

impl Evaluation {
    pub(super) fn with(context: DataContext) -> Self {
        Self {
            context,
            known: Vec::new(),
            meter: Meter::default(),
        }
    }

    /// Whether a condition is true; the error says why it has no value.
    pub(super) fn is_true(
        &mut self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        condition: &Expression,
    ) -> Result<Result<bool, String>, StoreError> {
        self.evaluate(turn, run, condition, |value, _| match value {
            Value::Bool(is_true) => Ok(is_true),
            other => Err(Failure::not_a_bool(&other)),
        })
    }

    /// The value of an expression as JSON; the error says why it has no value.
    pub(super) fn json(
        &mut self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        expression: &Expression,
    ) -> Result<Result<Json, String>, StoreError> {
        self.evaluate(turn, run, expression, |value, meter| value.write(meter))
    }

    /// What `convert` makes of the value of an expression. The cost of both is charged to the turn.
    fn evaluate<T>(
        &mut self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        expression: &Expression,
        convert: impl FnOnce(Value, &mut Meter) -> Result<T, Failure>,
    ) -> Result<Result<T, String>, StoreError> {
        let spent = self.meter.spent();
        let mut variables = RunVariables {
            turn,
            run,
            context: self.context,
            variables: &expression.variables,
            known: &mut self.known,
        };
        let value = evaluate(&expression.compiled, &mut variables, &mut self.meter);
        let converted = match value {
            Ok(value) => convert(value, &mut self.meter),
            Err(Stop::Failed(failure)) => Err(failure),
            Err(Stop::Variables(error)) => return Err(error),
        };
        turn.spend_units(self.meter.spent() - spent);
        Ok(converted.map_err(|failure| failure.of_expression(&expression.text)))
    }
}

/// The variables of one expression.
struct RunVariables<'v, 't, 'e> {
    turn: &'v mut Turn<'t, 'e>,
    run: &'v mut LoadedRun,
    context: DataContext,
    variables: &'v [Variable],
    known: &'v mut Vec<(Variable, Value)>,
}

impl Variables for RunVariables<'_, '_, '_> {
    type Error = StoreError;

    fn variable(&mut self, position: u16, meter: &mut Meter) -> Result<Value, Stop<StoreError>> {
        let variable = self.variables[usize::from(position)];
        if let Some((_, value)) = self.known.iter().find(|(known, _)| *known == variable) {
            return Ok(value.clone());
        }
        let value = self.read(variable, meter)?;
        self.known.push((variable, value.clone()));
        Ok(value)
    }
}

impl RunVariables<'_, '_, '_> {
    fn read(&mut self, variable: Variable, meter: &mut Meter) -> Result<Value, Stop<StoreError>> {
        let root = match variable {
            Variable::Now => {
                let now = Timestamp::from_millis(self.turn.now_ms());
                return Ok(Value::Timestamp(now));
            }
            Variable::Attempt => {
                let attempt = self.context.last_attempt.map_or(0, |last| last.attempt);
                return Ok(Value::Int(i64::from(attempt)));
            }
            // Only triggers read it, before there is a run.
            Variable::Record => return Ok(Value::Null),
            Variable::Root(root) => root,
        };
        let text = render::text_of(self.turn, self.run, self.context, root);
        let text = text.map_err(Stop::Variables)?.unwrap_or_else(Json::null);
        meter.spend_bytes(text.as_str().len())?;
        Ok(Value::from_json(text)?)
    }
}
