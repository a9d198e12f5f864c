//! Expressions of a definition (W64).

use super::Root;
use crate::expression::CompiledExpression;
use serde::{Deserialize, Serialize};

/// An expression, compiled when the definition was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expression {
    /// Its text, for messages and graphs.
    pub text: String,
    /// Its variables, in the order of their positions.
    pub variables: Vec<Variable>,
    /// What is evaluated.
    pub compiled: CompiledExpression,
}

/// A variable of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Variable {
    /// What paths with this root lead into.
    Root(Root),
    /// `flo.now`: the log entry's time as a timestamp.
    Now,
    /// `attempt`: the number of the attempt that has ended, in `retry.when` (W71).
    Attempt,
    /// `record`: the record that a trigger has read, in its `when` (W93).
    Record,
}
