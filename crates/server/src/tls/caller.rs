//! The certificate with which a caller has connected.

use flotilla_replica::{Caller, CallerCertificate};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::server::TlsStream;

/// A certificate that the node has accepted.
struct AcceptedCertificate(CertificateDer<'static>);

impl CallerCertificate for AcceptedCertificate {
    fn is_valid_for(&self, host: &str) -> bool {
        let certificate = ParsedCertificate::try_from(&self.0);
        certificate.is_ok_and(|certificate| is_valid_for(&certificate, host))
    }
}

/// The caller at the other end of a connection.
pub(crate) fn caller_of(stream: &TlsStream<TcpStream>) -> Caller {
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    certificate.map_or_else(Caller::default, |certificate| {
        let certificate = AcceptedCertificate(certificate.clone().into_owned());
        Caller::with_certificate(Arc::new(certificate))
    })
}

/// Whether a certificate is valid for a host.
pub(super) fn is_valid_for(certificate: &ParsedCertificate<'_>, host: &str) -> bool {
    ServerName::try_from(host).is_ok_and(|name| verify_server_name(certificate, &name).is_ok())
}
