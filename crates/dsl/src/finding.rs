//! Findings of validation (W6).

use crate::{Code, Severity, Span};
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// One finding of validation.
///
/// Its machine form has the fields `code`, `severity`, `message`, `line`, `column` and `hint`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The code, which decides the severity.
    pub code: Code,
    /// What is wrong, in one line.
    pub message: String,
    /// The place in the text.
    pub span: Span,
    /// What to do about it, if that is known.
    pub hint: Option<String>,
}

impl Finding {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            span,
            hint: None,
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Adds `did you mean "…"?` if there is a suggestion.
    pub(crate) fn suggest(self, suggestion: Option<&str>) -> Self {
        match suggestion {
            Some(suggestion) => self.hint(format!("did you mean {suggestion:?}?")),
            None => self,
        }
    }

    /// Whether it rejects the definition.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.code.severity()
    }
}

impl Serialize for Finding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut record = serializer.serialize_struct("Finding", 6)?;
        record.serialize_field("code", self.code.as_str())?;
        record.serialize_field("severity", self.severity().as_str())?;
        record.serialize_field("message", &self.message)?;
        record.serialize_field("line", &self.span.line)?;
        record.serialize_field("column", &self.span.column)?;
        record.serialize_field("hint", &self.hint)?;
        record.end()
    }
}
