//! Which callers a node serves as its peers.

use flotilla_engine::BoundActor;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The certificate that a caller presented.
pub trait CallerCertificate: Send + Sync + 'static {
    /// Whether it is valid for this host: a name or an IP address.
    fn is_valid_for(&self, host: &str) -> bool;

    /// The subject that it proves, and until when; `None` if it has no subject alternative name that is one.
    fn bound_actor(&self) -> Option<&BoundActor>;
}

/// A caller, as its connection shows it.
#[derive(Clone, Default)]
pub struct Caller {
    certificate: Option<Arc<dyn CallerCertificate>>,
    connection: Option<CancellationToken>,
    address: Option<IpAddr>,
    admission: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Caller {
    /// A caller that presented a certificate.
    #[must_use]
    pub fn with_certificate(certificate: Arc<dyn CallerCertificate>) -> Self {
        Self {
            certificate: Some(certificate),
            ..Self::default()
        }
    }

    /// The same caller on a connection that its listening side closes once `closing` is cancelled.
    #[must_use]
    pub fn with_closing(self, closing: CancellationToken) -> Self {
        Self {
            connection: Some(closing),
            ..self
        }
    }

    /// The same caller, connected from this address.
    #[must_use]
    pub fn with_address(self, address: IpAddr) -> Self {
        Self {
            address: Some(address),
            ..self
        }
    }

    /// The address from which it connected, if the listening side knows it: that of a proxy, if there is one.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The same caller, with a function that is called when a call on its connection is admitted, possibly more than once.
    #[must_use]
    pub fn with_admission(self, admitted: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            admission: Some(Arc::new(admitted)),
            ..self
        }
    }

    /// Records that a call on its connection was admitted. If there are too many connections, others are closed first.
    pub fn mark_admitted(&self) {
        if let Some(admitted) = &self.admission {
            admitted();
        }
    }

    /// Closes its connection, if the listening side can.
    pub fn disconnect(&self) {
        if let Some(connection) = &self.connection {
            connection.cancel();
        }
    }

    /// Whether it presented a certificate, which the listening side has accepted.
    #[must_use]
    pub fn has_certificate(&self) -> bool {
        self.certificate.is_some()
    }

    /// The subject that its certificate proves, if it presented one.
    #[must_use]
    pub fn bound_actor(&self) -> Option<&BoundActor> {
        self.certificate.as_ref()?.bound_actor()
    }

    /// Whether its certificate is valid for one of these hosts. A caller without a certificate could only connect because the
    /// cluster does not use TLS.
    pub(crate) fn is_any_of<'a>(&self, mut hosts: impl Iterator<Item = &'a str>) -> bool {
        let Some(certificate) = &self.certificate else {
            return true;
        };
        hosts.any(|host| certificate.is_valid_for(host))
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Caller")
            .field("has_certificate", &self.has_certificate())
            .finish()
    }
}

/// The host of a `host:port`, without the brackets of an IPv6 address.
#[must_use]
pub fn host_of(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.trim_start_matches('[').trim_end_matches(']')
}
