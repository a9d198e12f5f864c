//! What a node checks and records about the callers at its ports.

use super::calls_without_token::CallsWithoutToken;
use super::needs::Needs;
use super::token_uses::TokenUses;
use super::unknown_credentials::UnknownCredentials;
use crate::config::ServerConfig;
use crate::errors::Refusal;
use flotilla_engine::{AccessRejection, Actor};
use std::net::IpAddr;

/// What a node checks and records about the callers at its ports.
#[derive(Debug)]
pub(crate) struct CallerChecks {
    requires_token: bool,
    is_metrics_page_public: bool,
    pub(super) unknown_credentials: UnknownCredentials,
    pub(super) token_uses: TokenUses,
    pub(crate) calls_without_token: CallsWithoutToken,
}

impl CallerChecks {
    /// The checks of a node with this configuration.
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self {
            requires_token: config.require_token,
            is_metrics_page_public: config.metrics_public,
            unknown_credentials: UnknownCredentials::new(),
            token_uses: TokenUses::default(),
            calls_without_token: CallsWithoutToken::new(),
        }
    }

    /// Whether the node's configuration requires a token for every call.
    pub(crate) fn requires_token(&self) -> bool {
        self.requires_token
    }

    /// Whether the node's configuration lets every caller read its metrics.
    pub(crate) fn is_metrics_page_public(&self) -> bool {
        self.is_metrics_page_public
    }

    /// Records a call whose caller has shown no token.
    pub(super) fn record(&self, actor: &Actor, address: Option<IpAddr>, needs: Needs) {
        if is_without_token(actor, needs) {
            self.calls_without_token.record(address, needs);
        }
    }

    /// Checks whether the configuration of the node permits the call.
    ///
    /// # Errors
    /// The caller has shown no token, although the node requires one.
    pub(super) fn check(&self, actor: &Actor, needs: Needs) -> Result<(), Refusal> {
        if self.requires_token && is_without_token(actor, needs) {
            return Err(AccessRejection::CredentialMissing.into());
        }
        Ok(())
    }
}

/// Whether a closed cluster would refuse the call because its caller has shown no token.
fn is_without_token(actor: &Actor, needs: Needs) -> bool {
    *actor == Actor::Anonymous && needs != Needs::TaskToken
}
