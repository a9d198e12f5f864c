//! What a node checks and records about the callers at its ports.

use super::calls_without_token::CallsWithoutToken;
use super::needs::Needs;
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
    pub(crate) calls_without_token: CallsWithoutToken,
}

impl CallerChecks {
    /// Those of a node with this configuration.
    pub(crate) fn new(config: &ServerConfig) -> Self {
        Self {
            requires_token: config.require_token,
            is_metrics_page_public: config.metrics_public,
            unknown_credentials: UnknownCredentials::default(),
            calls_without_token: CallsWithoutToken::new(),
        }
    }

    /// Whether the node serves only callers with a token, by its configuration.
    pub(crate) fn requires_token(&self) -> bool {
        self.requires_token
    }

    /// Whether everyone who reaches the node may read its metrics, by its configuration.
    pub(crate) fn is_metrics_page_public(&self) -> bool {
        self.is_metrics_page_public
    }

    /// Records the call, and checks whether the configuration of the node permits it.
    ///
    /// # Errors
    /// The caller has shown no token, although the node requires one.
    pub(super) fn check(
        &self,
        actor: &Actor,
        address: Option<IpAddr>,
        needs: Needs,
    ) -> Result<(), Refusal> {
        if *actor != Actor::Anonymous || needs == Needs::TaskToken {
            return Ok(());
        }
        self.calls_without_token.record(address, needs);
        if self.requires_token {
            return Err(AccessRejection::CredentialMissing.into());
        }
        Ok(())
    }
}
