//! Identifiers and names as types of their own.
//!
//! Names are checked where text enters (the `new` constructors); decoding trusts what was checked.

use crate::limits;
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, format_smolstr};
use std::fmt;

/// Why a text is no valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {noun} to be {rule}, but it is {found:?}")]
pub struct NameInvalid {
    /// What kind of name it was to be.
    pub noun: &'static str,
    /// The rule that it breaks.
    pub rule: &'static str,
    /// The text, cut to 64 characters.
    pub found: String,
}

fn check(
    noun: &'static str,
    rule: &'static str,
    text: &str,
    valid: bool,
) -> Result<(), NameInvalid> {
    if valid {
        return Ok(());
    }
    Err(NameInvalid {
        noun,
        rule,
        found: text.chars().take(64).collect(),
    })
}

fn is_name(text: &str, is_dot_allowed: bool) -> bool {
    let mut characters = text.chars();
    let starts_well = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    starts_well
        && text.len() <= limits::NAME_BYTES_MAX
        && characters.all(|c| {
            c.is_ascii_alphanumeric() || c == '_' || c == '-' || (is_dot_allowed && c == '.')
        })
}

fn is_token(text: &str, bytes_max: usize) -> bool {
    !text.is_empty()
        && text.len() <= bytes_max
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_namespace(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && !text.ends_with('-')
        && text.len() <= limits::NAMESPACE_BYTES_MAX
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn is_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= limits::NAME_BYTES_MAX && !text.chars().any(char::is_control)
}

const NAMESPACE_RULE: &str =
    "a letter, then letters, digits, `.`, `_` or `-`, not ending in `-`, at most 63 bytes";
const NAME_RULE: &str = "a letter or `_`, then letters, digits, `_` or `-`, at most 256 bytes";
const DOTTED_RULE: &str =
    "a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes";
const TOKEN_RULE: &str = "1 to 64 letters, digits, `_`, `-` or `.`";
const RUN_ID_RULE: &str = "1 to 256 letters, digits, `_`, `-` or `.`";
const TEXT_RULE: &str = "1 to 256 bytes without control characters";

/// Makes newtypes over checked texts: `Name = noun, rule in words, rule in code;`. A record is cloned each time that a
/// turn changes it, so its names are of a kind that costs no allocation then (ADR 0022).
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $noun:literal, $rule:ident, $valid:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(SmolStr);

        impl $name {
            /// Checks and wraps the text.
            ///
            /// # Errors
            /// [`NameInvalid`] when the text breaks the rule of this kind of name.
            pub fn new(text: impl Into<SmolStr>) -> Result<Self, NameInvalid> {
                let text = text.into();
                let is_valid: fn(&str) -> bool = $valid;
                check($noun, $rule, &text, is_valid(&text))?;
                Ok(Self(text))
            }

            /// The text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )*};
}

names! {
    /// A namespace (A41).
    Namespace = "a namespace", NAMESPACE_RULE, is_namespace;
    /// A workflow's name (W0).
    WorkflowName = "a workflow name", DOTTED_RULE, |text| is_name(text, true);
    /// A workflow's version label (W5).
    WorkflowVersion = "a workflow version", TEXT_RULE, is_text;
    /// An action's name (A1).
    ActionName = "an action name", DOTTED_RULE, |text| is_name(text, true);
    /// A plan's name (W0).
    PlanName = "a plan name", DOTTED_RULE, |text| is_name(text, true);
    /// A step's name (W0).
    StepName = "a step name", NAME_RULE, |text| is_name(text, false);
    /// A custom terminal's name.
    TerminalName = "a terminal name", NAME_RULE, |text| is_name(text, false);
    /// A search attribute's name (W0).
    AttributeName = "a search attribute name", NAME_RULE, |text| is_name(text, false);
    /// An executor's name within its plan.
    ExecutorName = "an executor name", DOTTED_RULE, |text| is_name(text, true);
    /// An outcome (W11).
    OutcomeName = "an outcome", TOKEN_RULE, |text| is_token(text, limits::OUTCOME_BYTES_MAX);
    /// A signal's type (W19).
    SignalType = "a signal type", TEXT_RULE, is_text;
    /// A caller's id for a signal (W19).
    SignalId = "a signal id", TEXT_RULE, is_text;
    /// An error code that a failure carries (W35).
    ErrorCode = "an error code", TEXT_RULE, is_text;
    /// An event that drops cached plan results (W37).
    EventName = "an event name", TEXT_RULE, is_text;
    /// A stream's name (A30).
    StreamName = "a stream name", DOTTED_RULE, |text| is_name(text, true);
    /// A consumer group's name (A31); a part of its dead-letter stream's name.
    GroupName = "a consumer group name", DOTTED_RULE, |text| is_name(text, true);
    /// A consumer's name within its group (A31): by default its worker's id.
    ConsumerName = "a consumer name", TEXT_RULE, is_text;
    /// The key that keeps records of a stream in one partition (A30).
    PartitionKey = "a partition key", TEXT_RULE, is_text;
    /// A key of the key-value store (A40).
    KvKey = "a key", TEXT_RULE, is_text;
    /// A worker's id (A20).
    WorkerId = "a worker id", TEXT_RULE, is_text;
    /// A caller's idempotency key (W20).
    IdempotencyKey = "an idempotency key", TEXT_RULE, is_text;
    /// A workflow run's id: `wfrun-N`, or the caller's own (W20).
    RunId = "a run id", RUN_ID_RULE, |text| is_token(text, limits::NAME_BYTES_MAX);
}

impl Namespace {
    /// The namespace that is used when none is named.
    #[must_use]
    pub fn default_namespace() -> Self {
        Self(SmolStr::new_static("default"))
    }
}

/// Makes a newtype over a number that the engine hands out in order, from 1.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u64);
    )*};
}

numbers! {
    /// A workflow run's number: the key of everything that belongs to it.
    RunNumber;
    /// An action run's number.
    ActionRunNumber;
    /// A worker's number.
    WorkerNumber;
    /// The number of a plan that has been executed.
    PlanNumber;
    /// A stream's number.
    StreamNumber;
    /// A consumer group's number.
    GroupNumber;
}

const RUN_ID_PREFIX: &str = "wfrun-";
const ACTION_RUN_ID_PREFIX: &str = "arun-";

impl RunId {
    /// The id that the engine gives to the run `number` (W20).
    #[must_use]
    pub fn generated(number: RunNumber) -> Self {
        Self(format_smolstr!("{RUN_ID_PREFIX}{}", number.0))
    }

    /// Whether the id is of the form that only the engine hands out (W20).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(RUN_ID_PREFIX)
    }

    /// The number in a generated id.
    #[must_use]
    pub fn generated_number(&self) -> Option<RunNumber> {
        canonical_number(&self.0, RUN_ID_PREFIX).map(RunNumber)
    }
}

/// What the keys begin with that the engine shows for starts of its own (W20).
const DERIVED_KEY_PREFIX: &str = "flo:";

impl IdempotencyKey {
    /// The key that is shown for the run of a schedule's firing, in milliseconds (W20).
    #[must_use]
    pub fn of_firing(firing_ms: u64) -> Self {
        Self(format_smolstr!("{DERIVED_KEY_PREFIX}schedule:{firing_ms}"))
    }

    /// The key that is shown for the run of a trigger, by the first of its records (W20).
    #[must_use]
    pub fn of_record((namespace, stream): (&Namespace, &StreamName), first: RecordId) -> Self {
        Self(format_smolstr!(
            "{DERIVED_KEY_PREFIX}trigger:{namespace}/{stream}:{first}"
        ))
    }

    /// Whether the key is of a form that callers cannot use (W20).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(DERIVED_KEY_PREFIX)
    }
}

impl ActionRunNumber {
    /// The number in an action run's published id, `arun-N`.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        canonical_number(id, ACTION_RUN_ID_PREFIX).map(Self)
    }
}

impl fmt::Display for ActionRunNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{ACTION_RUN_ID_PREFIX}{}", self.0)
    }
}

/// The number after `prefix`, if it is spelt as the engine spells it: no sign, no leading zero.
fn canonical_number(id: &str, prefix: &str) -> Option<u64> {
    let digits = id.strip_prefix(prefix)?;
    let is_canonical = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_canonical {
        digits.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_their_rules() {
        assert!(StepName::new("await_approval-2").is_ok());
        assert!(StepName::new("a.b").is_err());
        assert!(WorkflowName::new("a.b").is_ok());
        assert!(WorkflowName::new("a:b").is_err());
        assert!(WorkflowName::new("x".repeat(257)).is_err());
        assert!(Namespace::new("prod-eu.1").is_ok());
        assert!(Namespace::new("prod-").is_err());
        assert!(Namespace::new("1st").is_err());
        assert!(OutcomeName::new("needs_review").is_ok());
        assert!(OutcomeName::new("").is_err());
        assert!(RunId::new("2f0c.order_7-b").is_ok());
        for id in ["", "a b", "a/b", "a:b", "ä"] {
            assert!(RunId::new(id).is_err(), "{id}");
        }
        assert!(RunId::new("x".repeat(256)).is_ok() && RunId::new("x".repeat(257)).is_err());
    }

    #[test]
    fn only_canonical_generated_ids_have_a_number() {
        let number = |text: &str| RunId::new(text).ok().and_then(|id| id.generated_number());
        assert_eq!(number("wfrun-12"), Some(RunNumber(12)));
        assert_eq!(number("wfrun-012"), None);
        assert_eq!(number("wfrun-+1"), None);
        assert_eq!(number("order-7"), None);
    }
}
