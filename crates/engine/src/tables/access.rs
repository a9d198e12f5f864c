//! Access: the mode of the cluster, its API tokens, and the rights of subjects (X1, X7, X17).

use super::tables;
use crate::access::{AccessMode, Actor, BindingSubject, Grant, SecretHash};
use crate::command_scope::CommandScope;
use crate::ids::{ApproverRole, Identity, TokenId, TokenName};
use serde::{Deserialize, Serialize};

tables! {
    /// One row, from the formation of the cluster on. Lives as long as the cluster.
    103 Access(()) -> AccessRecord, HOT;
    /// By id. Live until they have ended and other tokens of their scope are created (X7).
    104 Tokens(TokenId) -> TokenRecord, HOT;
    /// Tokens by their scope. Live as long as the token's record.
    105 TokensByScope((CommandScope, TokenId)) -> ();
    /// Which token has a secret. Lives as long as the token's record has the secret.
    106 TokenSecrets([u8; 32]) -> TokenId;
    /// How many tokens have a scope. Lives as long as there are any.
    107 TokenCounts(CommandScope) -> u64;
    /// The tokens of a scope by the time in milliseconds at which they end or have ended. Live as long as the token's
    /// record.
    108 TokensEnding((CommandScope, u64, TokenId)) -> ();
    /// By subject and scope. Live until the subject is unbound there (X17).
    109 Bindings((BindingSubject, CommandScope)) -> BindingRecord, HOT;
    /// Bindings by their scope. Live as long as the binding's record.
    110 BindingsByScope((CommandScope, BindingSubject)) -> ();
    /// How many bindings a namespace has; for the cluster, how many there are in all scopes. Lives as long as there are any.
    111 BindingCounts(CommandScope) -> u64;
    /// The subjects that are refused whatever bindings they have. Live until the subject is unblocked, or the block has ended and
    /// other subjects are blocked (X12).
    112 BlockedSubjects(BindingSubject) -> BlockRecord, HOT;
    /// How many subjects are blocked. Lives as long as there are any.
    113 BlockedSubjectCount(()) -> u64;
    /// The blocks with an end, by it in milliseconds. Live as long as the block.
    114 BlocksEnding((u64, BindingSubject)) -> ();
}

/// Who may reach the cluster (X1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    /// Whether callers need a credential.
    pub mode: AccessMode,
    /// How often the mode or a credential has changed.
    pub revision: u64,
}

/// An API token, without its secret (X7).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenRecord {
    /// What it is called. Names need not be unique.
    pub name: TokenName,
    /// The namespace to which it belongs, or the cluster. It carries no grant beyond.
    pub scope: CommandScope,
    /// On whose account it acts.
    pub identity: Identity,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// The approver roles of its holder (W61).
    pub approves: Vec<ApproverRole>,
    /// Its secret.
    pub secret: SecretHash,
    /// The secret before the last rotation, if there was one, and when it ends, in milliseconds.
    pub former_secret: Option<(SecretHash, u64)>,
    /// When it was created, in milliseconds.
    pub created_at_ms: u64,
    /// Who created it.
    pub created_by: Actor,
    /// When it expires, in milliseconds.
    pub expires_at_ms: Option<u64>,
    /// When it was revoked, in milliseconds.
    pub revoked_at_ms: Option<u64>,
    /// The hour in which callers used it last, by its beginning in milliseconds.
    pub last_used_at_ms: Option<u64>,
}

/// The rights of a subject in a scope (X17).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingRecord {
    /// What the subject may do.
    pub grants: Vec<Grant>,
    /// Its approver roles (W61).
    pub approves: Vec<ApproverRole>,
    /// When it was changed last, in milliseconds.
    pub changed_at_ms: u64,
    /// Who changed it last.
    pub changed_by: Actor,
}

/// The block of a subject (X12).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// When it ends, in milliseconds; without an end if not given.
    pub ends_at_ms: Option<u64>,
    /// When the subject was blocked, in milliseconds.
    pub blocked_at_ms: u64,
    /// Who blocked it.
    pub blocked_by: Actor,
}

impl BlockRecord {
    /// Whether the subject is refused at `now_ms`.
    #[must_use]
    pub fn is_in_force(&self, now_ms: u64) -> bool {
        self.ends_at_ms.is_none_or(|end_ms| now_ms < end_ms)
    }
}
