//! Creating API tokens (X7, X10).

use super::authority::Authority;
use super::grant::{self, Grant};
use super::judge::judge_turn;
use super::permission::Permission;
use super::secret::SecretHash;
use super::{credentials, tokens};
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::ids::{ApproverRole, Identity, TokenId, TokenName};
use crate::limits::TOKEN_TTL_MS_MAX;
use crate::reply::TokenCreated;
use crate::tables::{TokenRecord, Tokens};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};
use smol_str::format_smolstr;

/// Creates an API token. Its secret is known to its creator alone; the command carries the digest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateToken {
    /// The id, which the proposer derives from the digest of the secret.
    pub id: TokenId,
    /// The namespace to which it belongs, or the cluster.
    pub scope: CommandScope,
    /// What it is called.
    pub name: TokenName,
    /// On whose account it acts; that of its creator if not given.
    pub identity: Option<Identity>,
    /// What it may do. At least one.
    pub grants: Vec<Grant>,
    /// The approver roles of its holder (W61); may be empty.
    pub approves: Vec<ApproverRole>,
    /// The digest of its secret.
    pub secret: SecretHash,
    /// How long it lives, in milliseconds; without an end if not given.
    pub ttl_ms: Option<u64>,
}

impl CreateToken {
    /// Checks the fields, so that a server can refuse them before the proposal.
    ///
    /// # Errors
    /// [`AccessRejection::TokenGrantsInvalid`] for no grants or too many; [`AccessRejection::TokenApprovesInvalid`] for too many
    /// approver roles; [`AccessRejection::GrantOutOfScope`] for one that holds
    /// beyond the scope of the token.
    pub fn check(&self) -> Result<(), AccessRejection> {
        grant::check_all(&self.scope, &self.grants, &self.approves)
    }

    pub(crate) fn authority<'c>(&'c self, _: &'c CommandScope) -> Authority<'c> {
        credentials::authority(&self.scope)
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<TokenCreated> {
        self.check()?;
        self.check_ttl(turn)?;
        credentials::check_grants(turn, &self.scope, &self.grants)?;
        credentials::check_approves(turn, &self.scope, &self.approves)?;
        let identity = self.identity(turn)?;
        if turn.get::<Tokens>(&self.id)?.is_some() {
            return Err(AccessRejection::TokenIdTaken(self.id).into());
        }
        let created_at_ms = turn.now_ms();
        let expires_at_ms = self
            .ttl_ms
            .map(|ttl_ms| created_at_ms.saturating_add(ttl_ms));
        let record = TokenRecord {
            name: self.name.clone(),
            scope: self.scope.clone(),
            identity,
            grants: self.grants.clone(),
            approves: self.approves.clone(),
            secret: self.secret,
            former_secret: None,
            created_at_ms,
            created_by: turn.actor().into_author(),
            expires_at_ms,
            revoked_at_ms: None,
            last_used_at_ms: None,
        };
        tokens::add(turn, self.id, record)?;
        Ok(TokenCreated {
            id: self.id,
            expires_at_ms,
        })
    }

    /// Who may change the access of the whole cluster may also create tokens that live longer than others.
    fn check_ttl(&self, turn: &mut Turn<'_, '_>) -> TurnResult<()> {
        if self.ttl_ms.is_some_and(|ttl_ms| ttl_ms <= TOKEN_TTL_MS_MAX) {
            return Ok(());
        }
        judge_turn(turn, &[Permission::AccessWrite], &CommandScope::Cluster)
    }

    /// The identity for which the token acts. Only who may assign identities gives it another than its own.
    fn identity(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Identity> {
        let own = credentials::identity_of(turn)?;
        match (&self.identity, own) {
            (None, Some(own)) => Ok(own),
            (Some(identity), Some(own)) if *identity == own => Ok(own),
            (Some(identity), _) => {
                judge_turn(turn, &[Permission::IdentityAssign], &self.scope)?;
                Ok(identity.clone())
            }
            (None, None) => Ok(Identity::new(format_smolstr!("service:{}", self.id))
                .expect("an id has no control characters")),
        }
    }
}
