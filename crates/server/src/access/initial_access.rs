//! Access control until the access mode of a new cluster is set (X2).

use super::api_token::ApiToken;
use super::bootstrap_token::{self, BOOTSTRAP_TOKEN_FILE};
use crate::config::ServerConfig;
use crate::errors::{Refusal, ServerCode};
use crate::keyring::{KEYRING_FILE, NodeKeyring};
use crate::secret_file::SecretFileError;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{
    AccessMode, AccessRecord, AccessRejection, Actor, BootstrapToken, InitializeAccess, Rejection,
    view,
};
use flotilla_replica::Replica;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the configuration of a node says about the access of a new cluster.
pub(crate) struct InitialAccessConfig {
    mode: AccessMode,
    token: Result<Option<BootstrapToken>, SecretFileError>,
}

/// The access of a new cluster. It decides about callers until the cluster has an access mode.
#[derive(Debug)]
pub(crate) struct InitialAccess {
    mode: AccessMode,
    bootstrap: Option<BootstrapToken>,
    /// Whether this node is a first member of a cluster that may be new.
    may_propose: bool,
    /// Whether this node has applied an access mode; a cluster keeps one from then on.
    is_initialized: AtomicBool,
    /// Whether the cluster was open when this node last read its mode.
    was_open: AtomicBool,
    /// Whether callers from other machines may reach the node.
    is_beyond_loopback: bool,
}

impl InitialAccessConfig {
    /// Reads the configured file. An error is reported only if the cluster may be new.
    pub(crate) fn of(config: &ServerConfig) -> Self {
        let file = config.bootstrap_token_file.as_deref();
        Self {
            mode: config.access,
            token: file.map(bootstrap_token::read).transpose(),
        }
    }

    /// What the first members of a cluster must agree on, as readable text.
    pub(crate) fn requirements(&self, keyring: &NodeKeyring) -> String {
        let mode = self.mode.as_str();
        let token = match &self.token {
            Ok(Some(token)) => format!("bootstrap token {}", token.id),
            Ok(None) | Err(_) => "no bootstrap token".to_owned(),
        };
        let keyring = match keyring.is_empty() {
            true => "no keyring".to_owned(),
            false => format!("keyring {}", keyring.summary()),
        };
        format!("access {mode}, {token}, {keyring}")
    }

    /// Determines the initial access from the configuration and the stored state, after the replica has started.
    ///
    /// # Errors
    /// [`SecretFileError`] if the cluster may be new and has no bootstrap token.
    pub(crate) fn resolve(
        self,
        config: &ServerConfig,
        replica: &Replica,
    ) -> Result<InitialAccess, SecretFileError> {
        let access = replica.stored_view(|reader| view::access(reader));
        if let Ok(Ok(Some(access))) = &access {
            self.warn_of_difference(access.mode);
        }
        let is_beyond_loopback = config.beyond_loopback().is_some();
        let may_be_new = matches!(access, Ok(Ok(None))) && config.join.is_none();
        if !may_be_new {
            return Ok(InitialAccess {
                is_beyond_loopback,
                may_propose: false,
                ..InitialAccess::new(self.mode, self.token.ok().flatten())
            });
        }
        // This node was cut off after the formation. The others have set the mode, and their files may be gone by now.
        if let (Some(_), Err(error)) = (replica.cluster_id(), &self.token) {
            tracing::warn!(%error, "the bootstrap token cannot be read, but the cluster is formed");
            return Ok(InitialAccess {
                is_beyond_loopback,
                may_propose: false,
                ..InitialAccess::new(self.mode, None)
            });
        }
        let token = match (self.token?, self.mode) {
            (None, AccessMode::Closed) if config.members().len() > 1 => {
                return Err(SecretFileError::NotConfigured(&BOOTSTRAP_TOKEN_FILE));
            }
            (None, AccessMode::Closed) => Some(bootstrap_token::of_single_node(&config.data_dir)?),
            (token, _) => token,
        };
        Ok(InitialAccess {
            is_beyond_loopback,
            ..InitialAccess::new(self.mode, token)
        })
    }

    /// The mode is in the state: the configuration of a node does not change it.
    fn warn_of_difference(&self, mode: AccessMode) {
        if mode != self.mode {
            tracing::warn!(
                "`access` is `{}`, but the cluster is {}, and only `flo auth enable` and `flo auth disable` change that",
                self.mode.as_str(),
                mode.as_str()
            );
        }
    }
}

impl InitialAccess {
    /// The access of a new cluster with this mode and bootstrap token.
    pub(crate) fn new(mode: AccessMode, bootstrap: Option<BootstrapToken>) -> Self {
        Self {
            mode,
            bootstrap,
            may_propose: true,
            is_initialized: AtomicBool::new(false),
            was_open: AtomicBool::new(false),
            is_beyond_loopback: false,
        }
    }

    /// What this node proposes as the leader of a cluster without a mode; `None` if the node was added later, or if no caller
    /// could administer the cluster then.
    pub(crate) fn proposal(&self) -> Option<InitializeAccess> {
        let is_administrable = self.mode == AccessMode::Open || self.bootstrap.is_some();
        (self.may_propose && is_administrable).then_some(InitializeAccess {
            mode: self.mode,
            bootstrap: self.bootstrap,
        })
    }

    /// Whether the cluster has an access mode, by these rows.
    pub(crate) fn is_initialized(&self, reader: &dyn Reader) -> Result<bool, StoreError> {
        if self.is_initialized.load(Ordering::Relaxed) {
            return Ok(true);
        }
        self.refresh(reader)
    }

    /// Whether this node has applied an access mode, as far as it has looked.
    pub(crate) fn is_known(&self) -> bool {
        self.is_initialized.load(Ordering::Relaxed)
    }

    /// Reads the mode of the cluster, which may have changed; returns whether there is one.
    pub(crate) fn refresh(&self, reader: &dyn Reader) -> Result<bool, StoreError> {
        let access = view::access(reader)?;
        self.was_open.store(is_open(access), Ordering::Relaxed);
        let is_initialized = access.is_some();
        self.is_initialized
            .fetch_or(is_initialized, Ordering::Relaxed);
        Ok(is_initialized)
    }

    /// Whether the cluster was open when this node last read its mode: then callers without a credential could do everything.
    pub(crate) fn was_open(&self) -> bool {
        self.was_open.load(Ordering::Relaxed)
    }

    /// Whether the cluster is open by these rows.
    pub(super) fn is_open(&self, reader: &dyn Reader) -> Result<bool, StoreError> {
        Ok(self.is_initialized(reader)? && is_open(view::access(reader)?))
    }

    /// Whether callers from other machines may do everything without a token.
    pub(crate) fn is_open_beyond_loopback(&self) -> bool {
        self.is_beyond_loopback && self.was_open()
    }

    /// Checks that a node of a closed cluster has a keyring.
    ///
    /// # Errors
    /// [`SecretFileError`] if its keyring is missing.
    pub(crate) fn check_keyring(
        &self,
        keyring: &NodeKeyring,
        replica: &Replica,
    ) -> Result<(), SecretFileError> {
        match keyring.is_empty() && self.is_closed(replica) {
            true => Err(SecretFileError::NotConfigured(&KEYRING_FILE)),
            false => Ok(()),
        }
    }

    /// Whether the cluster is closed, or will be once this node has formed it.
    fn is_closed(&self, replica: &Replica) -> bool {
        match replica.stored_view(|reader| view::access(reader)) {
            Ok(Ok(Some(access))) => access.mode == AccessMode::Closed,
            Ok(Ok(None)) => self.may_propose && self.mode == AccessMode::Closed,
            Ok(Err(_)) | Err(_) => false,
        }
    }

    /// Whether this is the bootstrap token of the new cluster.
    pub(super) fn is_bootstrap_token(&self, token: ApiToken) -> bool {
        self.bootstrap.is_some_and(|bootstrap| token.is(bootstrap))
    }

    /// Whether this node is a first member of a cluster that is not formed.
    pub(crate) fn awaits_formation(&self, replica: &Replica) -> bool {
        self.may_propose && replica.cluster_id().is_none()
    }

    /// Checks that the caller may form the cluster and read its status.
    pub(crate) fn check(&self, actor: &Actor, replica: &Replica) -> Result<(), Refusal> {
        let bootstrap = self.bootstrap.map(|bootstrap| bootstrap.id);
        match (actor, self.mode) {
            (Actor::System, _) | (Actor::Anonymous | Actor::Bound(_), AccessMode::Open) => Ok(()),
            (Actor::Token(token), _) if Some(*token) == bootstrap => Ok(()),
            (Actor::Anonymous | Actor::Bound(_), _) if self.awaits_formation(replica) => {
                let refusal = Refusal::from(Rejection::from(AccessRejection::CredentialMissing));
                Err(refusal.with_hint(
                    "the formation of a closed cluster needs its bootstrap token: pass its file with --token-file",
                ))
            }
            (Actor::Anonymous | Actor::Token(_) | Actor::Bound(_), _) => Err(not_initialized()),
        }
    }
}

fn is_open(access: Option<AccessRecord>) -> bool {
    access.is_some_and(|access| access.mode == AccessMode::Open)
}

/// The cluster has no access mode yet, so nothing decides what callers may do.
pub(crate) fn not_initialized() -> Refusal {
    let text = "expected the access mode of the cluster, but the cluster is new, or this node has not applied the mode yet";
    Refusal::new(ServerCode::AccessNotInitialized, text)
        .with_hint("form the cluster if it is new; otherwise retry the request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_open_beyond_loopback_only_if_the_cluster_is_open_and_the_node_listens_there() {
        for (is_beyond_loopback, was_open) in [(true, true), (true, false), (false, true)] {
            let access = InitialAccess {
                is_beyond_loopback,
                was_open: AtomicBool::new(was_open),
                ..InitialAccess::new(AccessMode::Open, None)
            };
            let expected = is_beyond_loopback && was_open;
            assert_eq!(access.is_open_beyond_loopback(), expected);
        }
    }
}
