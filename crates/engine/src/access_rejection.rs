//! Rejections of callers: their credentials, their rights, and the tokens that they manage (X9, X19, X20).

use crate::access::{Actor, BindingSubject, Grant, Permission};
use crate::command_scope::CommandScope;
use crate::ids::{Identity, TokenId};
use crate::limits::{TOKEN_APPROVES_MAX, TOKEN_GRANTS_MAX};
use crate::rejection_code::RejectionCode;
use serde::{Deserialize, Serialize};

/// Why a caller may not have a command carried out, or a token cannot be created or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum AccessRejection {
    /// The cluster is closed, and the caller shows no credential (X1).
    #[error(
        "expected a credential, because the cluster is closed, but the request shows no credential"
    )]
    CredentialMissing,
    /// No such credential exists (X9). The text does not say whether the id or the secret is wrong.
    #[error("expected a credential of this cluster, but it is unknown")]
    CredentialUnknown,
    /// The credential has expired (X9).
    #[error("expected a credential that is valid, but {0} has expired")]
    CredentialExpired(Actor),
    /// The credential was revoked (X9).
    #[error("expected a credential that is valid, but token {0} was revoked")]
    CredentialRevoked(TokenId),
    /// The subject that the caller proves is blocked (X12).
    #[error("expected a credential that is valid, but {0} is blocked")]
    SubjectBlocked(BindingSubject),
    /// The credential does not permit the command (X20).
    #[error(
        "expected a credential with permission {} in {}, but it does not have it",
        describe_permissions(.permissions), describe_scope(.scope)
    )]
    PermissionDenied {
        /// The permissions, of which one suffices.
        permissions: Vec<Permission>,
        /// Where it is needed.
        scope: CommandScope,
    },
    /// A grant permits more than the credential of its creator (X19).
    #[error("expected grants that your own credential has, but `{0}` exceeds them")]
    GrantExceedsOwn(Grant),
    /// A grant holds beyond the scope of the token (X19).
    #[error("expected grants in {} alone, but `{grant}` holds elsewhere too", describe_scope(.scope))]
    GrantOutOfScope {
        /// The grant.
        grant: Grant,
        /// The scope of the token.
        scope: CommandScope,
    },
    /// The token has no grants, or too many (X7).
    #[error("expected 1 to {TOKEN_GRANTS_MAX} grants, but there are {count}")]
    TokenGrantsInvalid {
        /// The number of grants.
        count: u64,
    },
    /// No token of the scope has this id (X10).
    #[error("expected an API token {0}, but it does not exist")]
    TokenNotFound(TokenId),
    /// The token has expired or was revoked (X10).
    #[error("expected a token that is valid, but token {0} has ended")]
    TokenEnded(TokenId),
    /// The subject has no binding in the scope (X17).
    #[error("expected a binding of {subject} in {}, but it does not exist", describe_scope(.scope))]
    BindingNotFound {
        /// The subject.
        subject: BindingSubject,
        /// The scope.
        scope: CommandScope,
    },
    /// A token with this id exists (X6).
    #[error("expected a new token id, but token {0} exists")]
    TokenIdTaken(TokenId),
    /// A token has this secret (X6).
    #[error("expected a new secret, but a token has this one")]
    TokenSecretTaken,
    /// The token has too many approver roles (W61).
    #[error("expected at most {TOKEN_APPROVES_MAX} approver roles, but there are {count}")]
    TokenApprovesInvalid {
        /// The number of roles.
        count: u64,
    },
    /// The caller is not among those who may decide about the step (W61).
    #[error("expected a decision by an approver of the step, but \"{0}\" is not one")]
    NotAnApprover(Identity),
    /// A caller without a credential closes the cluster (X1).
    #[error(
        "expected a token that administers the cluster, but the request shows no token: after closing, no caller could administer the cluster"
    )]
    AccessNotBootstrapped,
}

impl AccessRejection {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> RejectionCode {
        match self {
            Self::CredentialMissing => RejectionCode::CredentialMissing,
            Self::CredentialUnknown => RejectionCode::CredentialUnknown,
            Self::CredentialExpired(_) => RejectionCode::CredentialExpired,
            Self::CredentialRevoked(_) => RejectionCode::CredentialRevoked,
            Self::SubjectBlocked(_) => RejectionCode::SubjectBlocked,
            Self::BindingNotFound { .. } => RejectionCode::BindingNotFound,
            Self::PermissionDenied { .. } => RejectionCode::PermissionDenied,
            Self::GrantExceedsOwn(_) => RejectionCode::GrantExceedsOwn,
            Self::GrantOutOfScope { .. } => RejectionCode::GrantOutOfScope,
            Self::TokenGrantsInvalid { .. } => RejectionCode::TokenGrantsInvalid,
            Self::TokenNotFound(_) => RejectionCode::TokenNotFound,
            Self::TokenEnded(_) => RejectionCode::TokenEnded,
            Self::TokenIdTaken(_) => RejectionCode::TokenIdTaken,
            Self::TokenSecretTaken => RejectionCode::TokenSecretTaken,
            Self::TokenApprovesInvalid { .. } => RejectionCode::TokenApprovesInvalid,
            Self::NotAnApprover(_) => RejectionCode::NotAnApprover,
            Self::AccessNotBootstrapped => RejectionCode::AccessNotBootstrapped,
        }
    }
}

fn describe_permissions(permissions: &[Permission]) -> String {
    let names: Vec<_> = permissions.iter().map(|one| format!("`{one}`")).collect();
    names.join(" or ")
}

fn describe_scope(scope: &CommandScope) -> String {
    match scope {
        CommandScope::Cluster => "the cluster".to_owned(),
        CommandScope::Namespace(namespace) => format!("namespace \"{namespace}\""),
    }
}
