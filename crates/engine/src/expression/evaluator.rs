//! Evaluates a compiled expression.

use super::failure::a_value;
use super::meter::Meter;
use super::{CompiledExpression, Comprehension, Failure, Node, Value, functions, operators};
use std::rc::Rc;

/// Provides the variables of an expression.
pub trait Variables {
    /// Why a variable cannot be read, for a reason outside the expression.
    type Error;

    /// The variable at a position among those of the expression. Each is read when it is needed, and what is read is
    /// added to the meter.
    ///
    /// # Errors
    /// A [`Failure`] of the expression, or an error of the source.
    fn variable(&mut self, position: u16, meter: &mut Meter) -> Result<Value, Stop<Self::Error>>;
}

/// Why an evaluation stops.
#[derive(Debug)]
pub enum Stop<E> {
    /// The expression has no value.
    Failed(Failure),
    /// A variable cannot be read, for a reason outside the expression.
    Variables(E),
}

impl<E> From<Failure> for Stop<E> {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Evaluates a compiled expression. Its cost is added to the meter.
///
/// # Errors
/// If the expression has no value, or a variable cannot be read.
pub fn evaluate<V: Variables>(
    expression: &CompiledExpression,
    variables: &mut V,
    meter: &mut Meter,
) -> Result<Value, Stop<V::Error>> {
    let mut evaluator = Evaluator {
        variables,
        locals: Vec::new(),
        meter,
    };
    evaluator.evaluate(&expression.root)
}

struct Evaluator<'v, V> {
    variables: &'v mut V,
    /// The elements of the comprehensions around the current node, outermost first.
    locals: Vec<Value>,
    meter: &'v mut Meter,
}

impl<V: Variables> Evaluator<'_, V> {
    fn evaluate(&mut self, node: &Node) -> Result<Value, Stop<V::Error>> {
        self.meter.spend(1)?;
        match node {
            Node::Constant(constant) => {
                self.meter.spend_bytes(constant.bytes())?;
                Ok(constant.into())
            }
            Node::Variable(position) => self.variables.variable(*position, self.meter),
            Node::Local(depth) => Ok(self.locals[usize::from(*depth)].clone()),
            Node::Select { operand, field } => {
                let operand = self.evaluate(operand)?;
                Ok(operators::select(&operand, field, self.meter)?)
            }
            Node::Has { operand, field } => {
                let operand = self.evaluate(operand)?;
                Ok(operators::has(&operand, field, self.meter)?)
            }
            Node::List(elements) => {
                let elements = elements.iter().map(|element| self.evaluate(element));
                Ok(Value::list(elements.collect::<Result<_, _>>()?))
            }
            Node::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Ok((self.evaluate(key)?, self.evaluate(value)?)));
                let entries = entries.collect::<Result<_, Stop<V::Error>>>()?;
                Ok(operators::map(entries, self.meter)?)
            }
            Node::And(operands) => self.logical(operands, false),
            Node::Or(operands) => self.logical(operands, true),
            Node::Conditional(parts) => {
                let (condition, then, otherwise) = &**parts;
                let chosen = match self.evaluate(condition)? {
                    Value::Bool(true) => then,
                    Value::Bool(false) => otherwise,
                    other => return Err(Failure::no_such_overload("?:", &[other]).into()),
                };
                self.evaluate(chosen)
            }
            Node::Call { function, operands } => {
                let operands = operands.iter().map(|operand| self.evaluate(operand));
                let operands = operands.collect::<Result<_, _>>()?;
                Ok(functions::call(*function, operands, self.meter)?)
            }
            Node::Matches { text, pattern } => match self.evaluate(text)? {
                Value::String(text) => {
                    self.meter.spend_bytes(pattern.cost(&text))?;
                    Ok(Value::Bool(pattern.is_match(&text)))
                }
                other => Err(Failure::no_such_overload("matches", &[other]).into()),
            },
            Node::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    /// `&&` and `||`: an operand that is `decisive` decides, even if the other one fails.
    fn logical(
        &mut self,
        operands: &(Node, Node),
        decisive: bool,
    ) -> Result<Value, Stop<V::Error>> {
        let mut outcome = Quantified::new(decisive);
        for operand in [&operands.0, &operands.1] {
            let value = self.evaluate(operand);
            if outcome.has_decided(value)? {
                break;
            }
        }
        outcome.into_value()
    }

    fn comprehension(&mut self, comprehension: &Comprehension) -> Result<Value, Stop<V::Error>> {
        match comprehension {
            Comprehension::All { range, predicate } => self.quantify(range, predicate, false),
            Comprehension::Exists { range, predicate } => self.quantify(range, predicate, true),
            Comprehension::ExistsOne { range, predicate } => {
                let kept = self.collect(range, Some(predicate), None)?;
                Ok(Value::Bool(kept.len() == 1))
            }
            Comprehension::Filter { range, predicate } => {
                Ok(Value::list(self.collect(range, Some(predicate), None)?))
            }
            Comprehension::Map {
                range,
                predicate,
                transform,
            } => {
                let made = self.collect(range, predicate.as_ref(), Some(transform))?;
                Ok(Value::list(made))
            }
        }
    }

    /// `all` and `exists`: an element for which the predicate is `decisive` decides, even if it fails for others.
    fn quantify(
        &mut self,
        range: &Node,
        predicate: &Node,
        decisive: bool,
    ) -> Result<Value, Stop<V::Error>> {
        let mut outcome = Quantified::new(decisive);
        for element in self.elements(range)?.iter() {
            let value = self.with_local(element.clone(), predicate);
            if outcome.has_decided(value)? {
                break;
            }
        }
        outcome.into_value()
    }

    /// The elements for which the predicate is true, transformed.
    fn collect(
        &mut self,
        range: &Node,
        predicate: Option<&Node>,
        transform: Option<&Node>,
    ) -> Result<Vec<Value>, Stop<V::Error>> {
        let mut made = Vec::new();
        for element in self.elements(range)?.iter() {
            if let Some(predicate) = predicate {
                match self.with_local(element.clone(), predicate)? {
                    Value::Bool(true) => {}
                    Value::Bool(false) => continue,
                    other => return Err(Failure::not_a_bool(&other).into()),
                }
            }
            made.push(match transform {
                Some(transform) => self.with_local(element.clone(), transform)?,
                None => element.clone(),
            });
        }
        Ok(made)
    }

    /// The elements of a list, or the keys of a map.
    fn elements(&mut self, range: &Node) -> Result<Rc<Vec<Value>>, Stop<V::Error>> {
        match self.evaluate(range)? {
            Value::List(list) => Ok(list.elements(self.meter)?),
            Value::Map(map) => Ok(Rc::new(map.keys(self.meter)?)),
            other => {
                let range = a_value(other.kind());
                Err(Failure::new(format!("{range} has no elements")).into())
            }
        }
    }

    fn with_local(&mut self, local: Value, node: &Node) -> Result<Value, Stop<V::Error>> {
        self.locals.push(local);
        let value = self.evaluate(node);
        self.locals.pop();
        value
    }
}

/// The outcome of operands of which one value decides, even if others fail.
struct Quantified {
    decisive: bool,
    is_decided: bool,
    failure: Option<Failure>,
}

impl Quantified {
    fn new(decisive: bool) -> Self {
        Self {
            decisive,
            is_decided: false,
            failure: None,
        }
    }

    /// Takes the next operand. Whether it has decided.
    fn has_decided<E>(&mut self, operand: Result<Value, Stop<E>>) -> Result<bool, Stop<E>> {
        let failure = match operand {
            Ok(Value::Bool(value)) => {
                self.is_decided = value == self.decisive;
                return Ok(self.is_decided);
            }
            Ok(other) => Failure::not_a_bool(&other),
            Err(Stop::Failed(failure)) if !failure.is_exhausted() => failure,
            Err(stop) => return Err(stop),
        };
        self.failure.get_or_insert(failure);
        Ok(false)
    }

    fn into_value<E>(self) -> Result<Value, Stop<E>> {
        match self.failure {
            Some(failure) if !self.is_decided => Err(failure.into()),
            _ => Ok(Value::Bool(self.is_decided == self.decisive)),
        }
    }
}
