//! Expressions: CEL, evaluated inside `apply` (W64).
//!
//! The crate `dsl` parses the text of an expression and lowers it to a [`CompiledExpression`]; nothing here parses CEL, so no parser
//! version decides how a run continues. Evaluation is bounded by its cost, and the same on every machine: `f64` is used
//! only for the operations that IEEE 754 defines exactly, and for reading and writing numbers, which Rust's standard
//! library defines exactly.
//!
//! Values from payloads stay JSON text until an operation needs their content: selecting one field of a large input
//! costs one pass over it, without building a tree.

mod compiled;
mod conversions;
mod equality;
mod evaluator;
mod failure;
mod functions;
mod meter;
mod number;
mod operators;
mod pattern;
mod read;
mod time;
mod value;
mod write;

pub use compiled::{CompiledExpression, Comprehension, Constant, Function, Node, Type};
pub use evaluator::{Stop, Variables, evaluate};
pub use failure::Failure;
pub use meter::Meter;
pub use number::Double;
pub use pattern::{Assertion, CharClass, Instruction, Pattern};
pub use time::{Span, Timestamp};
pub use value::{Key, List, Map, Value};

pub(crate) use equality::is_less;
pub(crate) use operators::add;
