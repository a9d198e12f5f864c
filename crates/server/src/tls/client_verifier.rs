//! Decides which clients a port accepts. The same authorities sign the certificates of nodes and of
//! clients; the extended key usages distinguish them.

use super::certificate::{Judge, Usage};
use std::sync::Arc;
use tokio_rustls::rustls::client::danger::HandshakeSignatureValid;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// Accepts clients whose certificate names these usages.
#[derive(Debug)]
pub(super) struct ClientVerifier {
    /// rustls's verifier, for what every certificate must have.
    pub(super) any: Arc<dyn ClientCertVerifier>,
    /// Checks the usages.
    pub(super) judge: Judge,
    /// The required usages.
    pub(super) usages: &'static [Usage],
    /// Whether clients without a certificate are rejected.
    pub(super) is_mandatory: bool,
}

impl ClientCertVerifier for ClientVerifier {
    fn client_auth_mandatory(&self) -> bool {
        self.is_mandatory
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.any.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self
            .any
            .verify_client_cert(end_entity, intermediates, now)?;
        self.judge
            .check_usages(end_entity, intermediates, self.usages, now)?;
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.any.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.any.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.any.supported_verify_schemes()
    }
}
