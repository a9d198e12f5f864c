//! Outcome names of actions.

use crate::limits::OUTCOME_BYTES_MAX;
use std::borrow::Cow;
use std::fmt;

/// The outcome of an action: any token of letters, digits, `_`, `-`, `.` up to 64 bytes, except
/// execution-level outcomes (W11).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutcomeName(
    /// Invariant: accepted by [`OutcomeName::new`].
    Cow<'static, str>,
);

/// Why a name is not a valid outcome of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutcomeNameRejected {
    /// It is empty, too long or has other characters.
    #[error(
        "expected an outcome of 1 to {OUTCOME_BYTES_MAX} letters, digits, `_`, `-` or `.`, but it \
         is another text"
    )]
    Malformed,
    /// It is an execution-level outcome.
    #[error("expected an outcome that an action may set, but the name is reserved for the engine")]
    Reserved,
}

/// Execution-level outcomes, which arise before an action's logic runs: no action may set one
/// (W11).
const EXECUTION_LEVEL: [&str; 3] = ["target_not_found", "target_disabled", "execution_failure"];

impl OutcomeName {
    /// The outcome of a handler that sets none.
    pub const SUCCESS: Self = Self(Cow::Borrowed("success"));
    /// The outcome of a handler that wants to be polled again (W14).
    pub const PENDING: Self = Self(Cow::Borrowed("pending"));

    /// Validates a name.
    ///
    /// # Errors
    /// [`OutcomeNameRejected`] for a text that is not a token, or is an execution-level outcome.
    pub fn new(name: &str) -> Result<Self, OutcomeNameRejected> {
        let is_token = (1..=OUTCOME_BYTES_MAX).contains(&name.len())
            && name
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        if !is_token {
            return Err(OutcomeNameRejected::Malformed);
        }
        if EXECUTION_LEVEL.contains(&name) {
            return Err(OutcomeNameRejected::Reserved);
        }
        Ok(Self(Cow::Owned(name.to_owned())))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for OutcomeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_up_to_64_bytes_are_outcomes() {
        for name in ["success", "needs_review", "v1.2-b", "A", &"x".repeat(64)] {
            assert_eq!(OutcomeName::new(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn other_texts_are_not() {
        for name in ["", "two words", "naïve", "a/b", "a\n", &"x".repeat(65)] {
            assert_eq!(
                OutcomeName::new(name),
                Err(OutcomeNameRejected::Malformed),
                "{name:?}"
            );
        }
    }

    #[test]
    fn execution_level_outcomes_cannot_be_claimed() {
        for name in EXECUTION_LEVEL {
            assert_eq!(OutcomeName::new(name), Err(OutcomeNameRejected::Reserved));
        }
    }
}
