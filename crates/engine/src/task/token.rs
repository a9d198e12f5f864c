//! Task tokens: the right to report on an attempt (A4).

use crate::ids::ActionRunNumber;
use crate::tables::ReportProof;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Names one attempt of one action run, with a secret derived from the entry's seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskToken {
    /// The action run.
    pub action_run: ActionRunNumber,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The secret, which cannot be guessed.
    pub secret: u64,
}

/// A text that is not a task token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a valid task token, but it is malformed")]
pub struct TokenInvalid;

impl TaskToken {
    /// The task's published id: the action run and the attempt.
    #[must_use]
    pub fn task_id(&self) -> String {
        format!("{}.{}", self.action_run, self.attempt)
    }

    /// Whether the token belongs to this attempt with this secret.
    pub(crate) fn is_of(&self, attempt: u32, proof: ReportProof) -> bool {
        (self.attempt, self.secret) == (attempt, proof.secret)
    }
}

impl fmt::Display for TaskToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{}.{}.{:016x}",
            self.action_run, self.attempt, self.secret
        )
    }
}

impl FromStr for TaskToken {
    type Err = TokenInvalid;

    fn from_str(text: &str) -> Result<Self, TokenInvalid> {
        let mut parts = text.split('.');
        let action_run = parts
            .next()
            .and_then(ActionRunNumber::from_id)
            .ok_or(TokenInvalid)?;
        let attempt = parts
            .next()
            .and_then(|part| part.parse().ok())
            .ok_or(TokenInvalid)?;
        let secret = parts.next().ok_or(TokenInvalid)?;
        let secret = u64::from_str_radix(secret, 16).map_err(|_| TokenInvalid)?;
        let token = Self {
            action_run,
            attempt,
            secret,
        };
        // Only the canonical spelling is valid: no other form of the numbers, and nothing after them.
        if token.to_string() == text {
            Ok(token)
        } else {
            Err(TokenInvalid)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_text_and_nothing_else_parses() {
        let token = TaskToken {
            action_run: ActionRunNumber(7),
            attempt: 2,
            secret: 0xabc,
        };
        assert_eq!(token.to_string(), "arun-7.2.0000000000000abc");
        assert_eq!(token.to_string().parse(), Ok(token));
        for text in [
            "",
            "arun-7",
            "arun-7.2",
            "arun-7.2.abc",
            "arun-7.2.0000000000000abc.1",
            "7.2.0000000000000abc",
            "arun-7.+2.0000000000000abc",
            "arun-7.02.0000000000000abc",
            "arun-7.2.0000000000000ABC",
            "arun-7.2.+000000000000abc",
        ] {
            assert_eq!(text.parse::<TaskToken>(), Err(TokenInvalid), "{text}");
        }
    }
}
