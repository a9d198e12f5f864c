//! Newtypes for identifiers and names.
//!
//! The `new` constructors validate names where text enters; decoding trusts validated text.

use crate::access::SecretHash;
use crate::limits;
use crate::stream::RecordId;
use serde::{Deserialize, Serialize};
use smol_str::{SmolStr, format_smolstr};
use std::fmt;

/// Why a text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {noun} to be {rule}, but it is {found:?}")]
pub struct NameInvalid {
    /// The kind of name that was expected.
    pub noun: &'static str,
    /// The rule that the text breaks.
    pub rule: &'static str,
    /// The text, truncated to 64 characters.
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

fn is_issuer_name(text: &str) -> bool {
    let is_valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=limits::ISSUER_NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_valid)
}

/// The first label of a namespace may end in a hyphen.
fn is_tree(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.len() <= limits::NAMESPACE_BYTES_MAX
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

fn is_text(text: &str) -> bool {
    !text.is_empty() && text.len() <= limits::NAME_BYTES_MAX && !text.chars().any(char::is_control)
}

fn is_approver(text: &str) -> bool {
    is_identity_of(text, ["user:", "role:"])
}

fn is_identity(text: &str) -> bool {
    is_identity_of(text, ["user:", "service:"])
}

/// Whether the text is one of the kinds and a name.
fn is_identity_of(text: &str, kinds: [&str; 2]) -> bool {
    let name = kinds.iter().find_map(|kind| text.strip_prefix(kind));
    name.is_some_and(|name| !name.is_empty() && !name.chars().any(char::is_control))
        && text.len() <= limits::IDENTITY_BYTES_MAX
}

fn is_comment(text: &str) -> bool {
    let is_layout = |c: char| matches!(c, '\n' | '\r' | '\t');
    (1..=limits::COMMENT_BYTES_MAX).contains(&text.len())
        && !text.contains(|c: char| c.is_control() && !is_layout(c))
}

fn is_scope_path(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= limits::SCOPE_PATH_BYTES_MAX
        && !text.chars().any(char::is_control)
}

const NAMESPACE_RULE: &str =
    "a letter, then letters, digits, `.`, `_` or `-`, not ending in `-`, at most 63 bytes";
const TREE_RULE: &str = "a letter, then letters, digits, `_` or `-`, at most 63 bytes";
const NAME_RULE: &str = "a letter or `_`, then letters, digits, `_` or `-`, at most 256 bytes";
const DOTTED_RULE: &str =
    "a letter or `_`, then letters, digits, `_`, `-` or `.`, at most 256 bytes";
const TOKEN_RULE: &str = "1 to 64 letters, digits, `_`, `-` or `.`";
const RUN_ID_RULE: &str = "1 to 256 letters, digits, `_`, `-` or `.`";
const APPROVER_RULE: &str =
    "`user:` or `role:` and a name without control characters, at most 320 bytes together";
const IDENTITY_RULE: &str =
    "`user:` or `service:` and a name without control characters, at most 320 bytes together";
const COMMENT_RULE: &str =
    "1 to 4,096 bytes without control characters except tabs and line breaks";
const SCOPE_PATH_RULE: &str = "1 to 16,384 bytes without control characters";
const ISSUER_RULE: &str = "1 to 32 lower-case letters, digits or `-`";
const TEXT_RULE: &str = "1 to 256 bytes without control characters";

/// Defines newtypes over validated texts: `Name = noun, rule as text, rule as code;`. A turn that changes a record
/// clones it, so names are of a type that clones without allocation (ADR 0022).
macro_rules! names {
    ($($(#[$doc:meta])* $name:ident = $noun:literal, $rule:ident, $valid:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(SmolStr);

        impl $name {
            /// Validates and wraps the text.
            ///
            /// # Errors
            /// [`NameInvalid`] if the text breaks the rule for this kind of name.
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
    /// The first label of the namespaces of a tree (X27).
    TreeName = "the root of a tree", TREE_RULE, is_tree;
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
    /// An executor's name, unique within its plan.
    ExecutorName = "an executor name", DOTTED_RULE, |text| is_name(text, true);
    /// An outcome (W11).
    OutcomeName = "an outcome", TOKEN_RULE, |text| is_token(text, limits::OUTCOME_BYTES_MAX);
    /// A key of a run's state (W66).
    StateKey = "a key of the state", TEXT_RULE, is_text;
    /// The published path of a scope, such as `fan/stock` or `each[3]` (W53).
    ScopePathText = "the path of a scope", SCOPE_PATH_RULE, |text| is_scope_path(text);
    /// A signal's type (W19).
    SignalType = "a signal type", TEXT_RULE, is_text;
    /// What an API token is called (X7).
    TokenName = "a token name", TEXT_RULE, is_text;
    /// On whose account a credential acts (X7a): `user:NAME` or `service:NAME`.
    Identity = "an identity", IDENTITY_RULE, is_identity;
    /// What the nodes call an issuer of tokens (X12).
    IssuerName = "the name of an issuer", ISSUER_RULE, is_issuer_name;
    /// The value of the subject of a binding (X12).
    SubjectValue = "the value of a subject", TEXT_RULE, is_text;
    /// Who may decide an approval (W61): `user:NAME` or `role:NAME`.
    Approver = "an approver", APPROVER_RULE, is_approver;
    /// A role that approves (W61): the `NAME` of `role:NAME`.
    ApproverRole = "an approver role", TEXT_RULE, is_text;
    /// The comment of a decision (W61).
    Comment = "a comment", COMMENT_RULE, is_comment;
    /// A caller's id for a signal (W19).
    SignalId = "a signal id", TEXT_RULE, is_text;
    /// An error code that a failure carries (W35).
    ErrorCode = "an error code", TEXT_RULE, is_text;
    /// The name of an invalidation event, which drops cached plan results (W37).
    EventName = "an event name", TEXT_RULE, is_text;
    /// A stream's name (A30).
    StreamName = "a stream name", DOTTED_RULE, |text| is_name(text, true);
    /// The name of a concurrency limit that workflows share (W84).
    ConcurrencyName = "the name of a concurrency limit", DOTTED_RULE, |text| is_name(text, true);
    /// A consumer group's name (A31); part of the name of its dead-letter stream.
    GroupName = "a consumer group name", DOTTED_RULE, |text| is_name(text, true);
    /// A consumer's name within its group (A31); by default its worker's id.
    ConsumerName = "a consumer name", TEXT_RULE, is_text;
    /// A record's partition key: records with the same key share a partition (A30).
    PartitionKey = "a partition key", TEXT_RULE, is_text;
    /// A key of the key-value store (A40).
    KvKey = "a key", TEXT_RULE, is_text;
    /// A worker's id (A20).
    WorkerId = "a worker id", TEXT_RULE, is_text;
    /// A caller's idempotency key (W20).
    IdempotencyKey = "an idempotency key", TEXT_RULE, is_text;
    /// A run id: `wfrun-N`, or one chosen by the caller (W20).
    RunId = "a run id", RUN_ID_RULE, |text| is_token(text, limits::NAME_BYTES_MAX);
}

impl Approver {
    /// Whether it is a single person; a role can have several.
    #[must_use]
    pub fn is_user(&self) -> bool {
        self.0.starts_with("user:")
    }

    /// Whether the holder of a credential is meant, who acts for `identity` and has these roles.
    #[must_use]
    pub fn matches(&self, identity: &Identity, roles: &[ApproverRole]) -> bool {
        match self.0.strip_prefix("role:") {
            Some(name) => roles.iter().any(|role| role.as_str() == name),
            None => self.as_str() == identity.as_str(),
        }
    }
}

impl SignalType {
    /// Whether no caller may send a signal of this type (W61a).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with("approval.")
    }
}

impl Namespace {
    /// The namespace that is used if none is given.
    #[must_use]
    pub fn default_namespace() -> Self {
        Self(SmolStr::new_static("default"))
    }

    /// The tree that it belongs to: its first label.
    #[must_use]
    pub fn tree(&self) -> TreeName {
        match self.0.split_once('.') {
            Some((label, _)) => TreeName(SmolStr::new(label)),
            None => TreeName(self.0.clone()),
        }
    }

    /// Whether it lies below the root of its tree.
    #[must_use]
    pub fn is_below_root(&self) -> bool {
        self.0.contains('.')
    }
}

impl TreeName {
    /// The namespace at the root of the tree.
    #[must_use]
    pub fn root(&self) -> Namespace {
        Namespace(self.0.clone())
    }
}

/// Defines a newtype over a number that the engine assigns sequentially, from 1.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub u64);
    )*};
}

numbers! {
    /// A workflow run's number: the key prefix of everything that belongs to the run.
    RunNumber;
    /// An action run's number.
    ActionRunNumber;
    /// A worker's number.
    WorkerNumber;
    /// The number of a plan that has been executed at least once.
    PlanNumber;
    /// A stream's number.
    StreamNumber;
    /// A consumer group's number.
    GroupNumber;
    /// The number of a concurrency key that runs hold or wait for (W84).
    ConcurrencyKeyNumber;
    /// The number of a lock that runs hold (W85).
    LockNumber;
    /// The number of a scope within its run (W53).
    ScopeNumber;
}

impl ScopeNumber {
    /// The run itself.
    pub const ROOT: Self = Self(0);
}

impl Default for ScopeNumber {
    fn default() -> Self {
        Self::ROOT
    }
}

impl OutcomeName {
    /// Whether only the engine gives this outcome (W11).
    #[must_use]
    pub fn is_execution_level(&self) -> bool {
        matches!(
            self.as_str(),
            "target_not_found" | "target_disabled" | "execution_failure"
        )
    }
}

const RUN_ID_PREFIX: &str = "wfrun-";
const ACTION_RUN_ID_PREFIX: &str = "arun-";

impl RunId {
    /// The id that the engine generates for the run `number` (W20).
    #[must_use]
    pub fn generated(number: RunNumber) -> Self {
        Self(format_smolstr!("{RUN_ID_PREFIX}{}", number.0))
    }

    /// Whether the id has the form that only the engine generates (W20).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(RUN_ID_PREFIX)
    }

    /// The run number in a generated id.
    #[must_use]
    pub fn generated_number(&self) -> Option<RunNumber> {
        canonical_number(&self.0, RUN_ID_PREFIX).map(RunNumber)
    }
}

/// The prefix of the idempotency keys that the engine shows for the runs that it starts (W20).
const DERIVED_KEY_PREFIX: &str = "flo:";

impl IdempotencyKey {
    /// The key that is shown for a run started by a schedule's firing, whose time is in milliseconds (W20).
    #[must_use]
    pub fn of_firing(firing_ms: u64) -> Self {
        Self(format_smolstr!("{DERIVED_KEY_PREFIX}schedule:{firing_ms}"))
    }

    /// The key that is shown for a run started by a trigger, made from the first of its records (W20).
    #[must_use]
    pub fn of_record(namespace: &Namespace, stream: &StreamName, first: RecordId) -> Self {
        Self(format_smolstr!(
            "{DERIVED_KEY_PREFIX}trigger:{namespace}/{stream}:{first}"
        ))
    }

    /// Whether the key has a form that callers cannot use (W20).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        self.0.starts_with(DERIVED_KEY_PREFIX)
    }
}

impl ActionRunNumber {
    /// Parses the number from an action run's published id, `arun-N`.
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

/// The number after `prefix`, if it is in canonical form: no sign, no leading zero.
fn canonical_number(id: &str, prefix: &str) -> Option<u64> {
    let digits = id.strip_prefix(prefix)?;
    let is_canonical = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_canonical {
        digits.parse().ok()
    } else {
        None
    }
}

/// The digits of a token id, in the order of their values.
const TOKEN_ID_DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
const TOKEN_ID_BITS: u32 = 50;

/// The public part of an API token (X6): a random number of 50 bits, published as 10 digits. The secret part is in no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TokenId(u64);

impl TokenId {
    /// The id made of the lower 50 bits.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits & ((1 << TOKEN_ID_BITS) - 1))
    }

    /// The id of a token with this secret.
    #[must_use]
    pub fn of_secret(secret: SecretHash) -> Self {
        let first = secret.0.first_chunk().expect("a digest has 32 bytes");
        Self::from_bits(u64::from_be_bytes(*first))
    }

    /// Parses a published id; `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != Self::digits_count() {
            return None;
        }
        let mut bits = 0;
        for byte in text.bytes() {
            let digit = TOKEN_ID_DIGITS.iter().position(|digit| *digit == byte)?;
            bits = bits << 5 | digit as u64;
        }
        Some(Self(bits))
    }

    pub(crate) fn number(self) -> u64 {
        self.0
    }

    fn digits_count() -> usize {
        TOKEN_ID_BITS as usize / 5
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for position in (0..Self::digits_count()).rev() {
            let digit = self.0 >> (5 * position) & 31;
            write!(formatter, "{}", char::from(TOKEN_ID_DIGITS[digit as usize]))?;
        }
        Ok(())
    }
}

/// A member's number in its cluster; never reused.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct NodeId(pub u64);

/// A unique number for one request, preferably a version 7 UUID (ADR 0023). A retry or forward keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RequestId(pub u128);

impl RequestId {
    /// When its maker made it, by the maker's clock, if it is a version 7 UUID. In milliseconds.
    #[must_use]
    pub fn made_at_ms(self) -> Option<u64> {
        let (version, variant) = (self.0 >> 76 & 0xF, self.0 >> 62 & 0b11);
        let made_at_ms = u64::try_from(self.0 >> 80).ok();
        made_at_ms.filter(|_| version == 7 && variant == 0b10)
    }

    /// The same id as a version 8 UUID, which has no time.
    #[must_use]
    pub fn without_time(self) -> Self {
        Self(self.0 & !(0xF << 76) | 8 << 76)
    }
}

/// A random number that identifies one take of a consumer. A resent take keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TakeId(pub u64);

/// Names a plan of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanRef {
    /// The workflow.
    pub workflow: WorkflowName,
    /// The plan.
    pub plan: PlanName,
}

/// Names a consumer group of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupRef {
    /// The stream.
    pub stream: StreamName,
    /// The group.
    pub group: GroupName,
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
    fn a_token_id_is_read_as_it_is_written() {
        for bits in [0, 1, 31, 32, (1 << 50) - 1, u64::MAX] {
            let id = TokenId::from_bits(bits);
            assert_eq!(id.to_string().len(), 10);
            assert_eq!(TokenId::parse(&id.to_string()), Some(id));
        }
        assert_eq!(TokenId::from_bits(33).to_string(), "aaaaaaaabb");
        for text in [
            "",
            "aaaaaaaab",
            "aaaaaaaaabb",
            "aaaaaaaa1b",
            "AAAAAAAABB",
            "aaaaaaaä",
        ] {
            assert_eq!(TokenId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn an_identity_is_a_person_or_a_service() {
        for text in ["user:ana", "service:billing", "user:ana@example.com"] {
            assert!(Identity::new(text).is_ok(), "{text}");
        }
        let long = format!("service:{}", "x".repeat(313));
        for text in ["ana", "role:ops", "user:", "user:a\n", &long] {
            assert!(Identity::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_generated_id_has_up_to_20_digits() {
        let run_id = RunId::generated(RunNumber(u64::MAX));
        assert_eq!(run_id.as_str(), "wfrun-18446744073709551615");
        assert_eq!(run_id.generated_number(), Some(RunNumber(u64::MAX)));
        let number = ActionRunNumber(u64::MAX);
        assert_eq!(number.to_string(), "arun-18446744073709551615");
        assert_eq!(ActionRunNumber::from_id(&number.to_string()), Some(number));
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
