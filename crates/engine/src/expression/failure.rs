//! Why an expression has no value.

use super::{Type, Value};
use std::fmt;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    message: String,
    is_exhausted: bool,
}

/// Characters of a value that a message quotes.
const QUOTED_CHARS_MAX: usize = 64;

/// Bytes of an expression that a message quotes.
const QUOTED_BYTES_MAX: usize = 256;

impl Failure {
    /// Says that the expression with this text has no value, and why.
    pub(crate) fn of_expression(&self, text: &str) -> String {
        let end = text.floor_char_boundary(QUOTED_BYTES_MAX);
        let more = if end < text.len() { "…" } else { "" };
        format!("expression \"{}{more}\": {self}", &text[..end])
    }

    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            is_exhausted: false,
        }
    }

    /// The cost limit is reached.
    pub(super) fn exhausted(limit: u32) -> Self {
        Self {
            message: format!("the expression costs more than {limit} units"),
            is_exhausted: true,
        }
    }

    /// A map has no such key.
    pub(super) fn no_such_key(key: &str) -> Self {
        Self::new(format!("no such key: {}", quoted(key)))
    }

    /// The operands have types that an operator or function does not take.
    pub(super) fn no_such_overload(operation: &str, operands: &[Value]) -> Self {
        let types: Vec<&str> = operands
            .iter()
            .map(|operand| operand.kind().name())
            .collect();
        Self::new(format!("{operation} does not take ({})", types.join(", ")))
    }

    /// A condition gives another value.
    pub(crate) fn not_a_bool(value: &Value) -> Self {
        let found = a_value(value.kind());
        Self::new(format!("expected a bool, but found {found}"))
    }

    /// What should be a list is not one.
    pub(crate) fn not_a_list(value: &Value) -> Self {
        let found = a_value(value.kind());
        Self::new(format!("expected a list, but found {found}"))
    }

    /// A text or number cannot be converted.
    pub(super) fn not_convertible(text: &str, to: Type) -> Self {
        Self::new(format!(
            "{} cannot be converted to {}",
            quoted(text),
            to.name()
        ))
    }

    /// A number is out of the range of its type.
    pub(super) fn out_of_range(of: Type) -> Self {
        Self::new(format!("the result is out of the range of {}", of.name()))
    }

    /// Whether the cost limit is reached: then `||`, `&&`, `all` and `exists` have no value either.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// What messages call a value of some type.
pub(super) fn a_value(of: Type) -> String {
    match of {
        Type::Null => "null".to_owned(),
        of => format!("a value of type {}", of.name()),
    }
}

/// The beginning of a text in quotation marks.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS_MAX) {
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}
