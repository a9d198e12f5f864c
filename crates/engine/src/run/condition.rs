//! Conditions: expressions over the data of a run (W60, W64, W65).

use super::render;
use crate::definition::{Expression, Variable};
use crate::expression::{Failure, Meter, Stop, Timestamp, Value, Variables, evaluate};
use crate::ids::ScopeNumber;
use crate::json::Json;
use crate::message::cut;
use crate::store::StoreError;
use crate::turn::{LoadedRun, Turn};

/// Evaluates the conditions of one step, which together cost at most as much as one evaluation may. Each variable is
/// read once.
pub(super) struct Conditions<'c, 't, 'e> {
    turn: &'c mut Turn<'t, 'e>,
    run: &'c mut LoadedRun,
    /// Where the step is.
    scope: ScopeNumber,
    known: Vec<(Variable, Value)>,
    meter: Meter,
}

impl<'c, 't, 'e> Conditions<'c, 't, 'e> {
    pub(super) fn new(
        turn: &'c mut Turn<'t, 'e>,
        run: &'c mut LoadedRun,
        scope: ScopeNumber,
    ) -> Self {
        Self {
            turn,
            run,
            scope,
            known: Vec::new(),
            meter: Meter::default(),
        }
    }

    /// Whether the condition is true; the error says why it has no value.
    pub(super) fn is_true(
        &mut self,
        condition: &Expression,
    ) -> Result<Result<bool, String>, StoreError> {
        let spent = self.meter.spent();
        let mut meter = std::mem::take(&mut self.meter);
        let mut variables = RunVariables {
            conditions: self,
            variables: &condition.variables,
        };
        let value = evaluate(&condition.compiled, &mut variables, &mut meter);
        self.turn.spend_units(meter.spent() - spent);
        self.meter = meter;
        let why = match value {
            Ok(Value::Bool(value)) => return Ok(Ok(value)),
            Ok(other) => Failure::not_a_bool(&other).to_string(),
            Err(Stop::Failed(failure)) => failure.to_string(),
            Err(Stop::Variables(error)) => return Err(error),
        };
        Ok(Err(cut(&format!(
            "expression \"{}\": {why}",
            condition.text
        ))))
    }

    fn read(&mut self, variable: Variable, meter: &mut Meter) -> Result<Value, Stop<StoreError>> {
        let root = match variable {
            Variable::Now => {
                return Ok(Value::Timestamp(Timestamp::from_millis(self.turn.now_ms())));
            }
            Variable::Root(root) => root,
        };
        let text =
            render::text_of(self.turn, self.run, self.scope, root).map_err(Stop::Variables)?;
        let text = text.unwrap_or_else(Json::null);
        meter.spend_bytes(text.as_str().len())?;
        Ok(Value::from_json(text)?)
    }
}

/// The variables of one condition.
struct RunVariables<'v, 'c, 't, 'e> {
    conditions: &'v mut Conditions<'c, 't, 'e>,
    variables: &'v [Variable],
}

impl Variables for RunVariables<'_, '_, '_, '_> {
    type Error = StoreError;

    fn variable(&mut self, position: u16, meter: &mut Meter) -> Result<Value, Stop<StoreError>> {
        let variable = self.variables[usize::from(position)];
        let mut known = self.conditions.known.iter();
        if let Some((_, value)) = known.find(|(known, _)| *known == variable) {
            return Ok(value.clone());
        }
        let value = self.conditions.read(variable, meter)?;
        self.conditions.known.push((variable, value.clone()));
        Ok(value)
    }
}
