//! The certificate with which a caller has connected.

use super::certificate::{Usage, not_after_seconds};
use flotilla_engine::ids::SubjectValue;
use flotilla_engine::{BindingSubject, BoundActor};
use flotilla_replica::{Caller, CallerCertificate};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::rustls::client::verify_server_name;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::server::TlsStream;
use webpki::EndEntityCert;

/// A certificate that the node has accepted.
struct AcceptedCertificate {
    certificate: CertificateDer<'static>,
    bound_actor: Option<BoundActor>,
}

impl CallerCertificate for AcceptedCertificate {
    fn is_valid_for(&self, host: &str) -> bool {
        let certificate = ParsedCertificate::try_from(&self.certificate);
        certificate.is_ok_and(|certificate| is_valid_for(&certificate, host))
    }

    fn bound_actor(&self) -> Option<&BoundActor> {
        self.bound_actor.as_ref()
    }
}

/// The caller at the other end of a connection.
pub(crate) fn caller_of(stream: &TlsStream<TcpStream>) -> Caller {
    let (_, session) = stream.get_ref();
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    certificate.map_or_else(Caller::default, |certificate| {
        Caller::with_certificate(Arc::new(AcceptedCertificate {
            bound_actor: bound_actor(certificate),
            certificate: certificate.clone().into_owned(),
        }))
    })
}

/// The subject of a client certificate (X11), and when the certificate expires.
pub(super) fn bound_actor(certificate: &CertificateDer<'_>) -> Option<BoundActor> {
    let subject = subject(&EndEntityCert::try_from(certificate).ok()?)?;
    let ends_at_seconds = not_after_seconds(certificate, Usage::Client).ok()?;
    Some(BoundActor {
        subject,
        groups: Vec::new(),
        ends_at_ms: ends_at_seconds.saturating_mul(1_000),
    })
}

/// The first URI in byte order among the subject alternative names, else the first DNS name.
fn subject(certificate: &EndEntityCert<'_>) -> Option<BindingSubject> {
    let first = |names: &mut dyn Iterator<Item = &str>| {
        names.filter_map(|name| SubjectValue::new(name).ok()).min()
    };
    let uri = first(&mut certificate.valid_uri_names()).map(BindingSubject::CertUri);
    uri.or_else(|| first(&mut certificate.valid_dns_names()).map(BindingSubject::CertDns))
}

/// Whether a certificate is valid for a host.
pub(super) fn is_valid_for(certificate: &ParsedCertificate<'_>, host: &str) -> bool {
    ServerName::try_from(host).is_ok_and(|name| verify_server_name(certificate, &name).is_ok())
}
