//! What a node checks and records about the callers at its ports.

use super::calls_without_token::CallsWithoutToken;
use super::needs::Needs;
use super::token_uses::TokenUses;
use super::unknown_credentials::UnknownCredentials;
use crate::config::{ClientCertificates, ServerConfig};
use crate::errors::Refusal;
use flotilla_engine::ids::Namespace;
use flotilla_engine::{AccessRejection, Actor, RejectionCode};
use flotilla_replica::Caller;

/// What a node checks and records about the callers at its ports.
#[derive(Debug)]
pub(crate) struct CallerChecks {
    requires_token: bool,
    /// Which callers need a client certificate; `None` if the node does not use TLS.
    client_certificates: Option<ClientCertificates>,
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
            client_certificates: config.tls_files().map(|_| config.client_certificates),
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
    pub(super) fn record(
        &self,
        (actor, caller): (&Actor, Option<&Caller>),
        (needs, namespace): (Needs, Option<&Namespace>),
    ) {
        if is_without_token(actor, needs) {
            self.calls_without_token.record(caller, (needs, namespace));
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

    /// Checks that the caller has presented a client certificate, if it needs one. With TLS, even an open cluster requires a
    /// certificate or a token.
    ///
    /// # Errors
    /// The caller has presented none.
    pub(super) fn check_certificate(
        &self,
        actor: &Actor,
        caller: Option<&Caller>,
        needs: Needs,
    ) -> Result<(), Refusal> {
        // Only a caller at a port has a connection; the node itself calls without.
        if caller.is_none_or(Caller::has_certificate) {
            return Ok(());
        }
        match self.client_certificates {
            Some(ClientCertificates::Required) => Err(certificate_required()),
            Some(ClientCertificates::Optional) if is_without_token(actor, needs) => {
                Err(certificate_missing())
            }
            Some(ClientCertificates::Optional) | None => Ok(()),
        }
    }
}

fn certificate_required() -> Refusal {
    let text = "expected a client certificate, because `client_certificates` is `required`, but the caller presents none";
    Refusal::new(RejectionCode::CredentialMissing, text).with_hint(
        "present a certificate that an authority in `tls_ca` has signed: `flo` takes it with --tls-cert and --tls-key",
    )
}

/// With TLS, even an open cluster requires a certificate or a token.
pub(crate) fn certificate_missing() -> Refusal {
    let text = "expected a token or a client certificate, but the request shows neither";
    Refusal::new(RejectionCode::CredentialMissing, text)
        .with_hint("send an API token as `Authorization: Bearer TOKEN`, or use a client certificate that an authority in `tls_ca` has signed")
}

/// Whether a closed cluster would refuse the call because its caller has shown no token.
fn is_without_token(actor: &Actor, needs: Needs) -> bool {
    *actor == Actor::Anonymous && needs != Needs::TaskToken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::certified;
    use flotilla_engine::ids::TokenId;

    fn checks(client_certificates: Option<ClientCertificates>) -> CallerChecks {
        CallerChecks {
            client_certificates,
            ..CallerChecks::new(&ServerConfig::default())
        }
    }

    #[test]
    fn with_tls_a_caller_needs_a_certificate_or_a_token() {
        let (stranger, token) = (Actor::Anonymous, Actor::Token(TokenId::from_bits(3)));
        let plain = Caller::default();
        let certified = certified("cert:dns:till");
        let optional = checks(Some(ClientCertificates::Optional));
        let required = checks(Some(ClientCertificates::Required));
        let none = checks(None);
        for (checks, actor, caller, is_served) in [
            (&none, &stranger, &plain, true),
            (&optional, &stranger, &plain, false),
            (&optional, &stranger, &certified, true),
            (&optional, &token, &plain, true),
            (&required, &token, &plain, false),
            (&required, &token, &certified, true),
        ] {
            let checked = checks.check_certificate(actor, Some(caller), Needs::Credential);
            assert_eq!(checked.is_ok(), is_served, "{checks:?} {actor}");
        }
        let report = optional.check_certificate(&stranger, Some(&plain), Needs::TaskToken);
        assert!(report.is_ok(), "the token of the task suffices");
        let report = required.check_certificate(&stranger, Some(&plain), Needs::TaskToken);
        assert!(
            report.is_err(),
            "at the port of gRPC, every caller needs one"
        );
    }
}
