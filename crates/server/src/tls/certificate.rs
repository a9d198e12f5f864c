//! Validates a certificate: its authority, its usages and its validity period. rustls's own check
//! is not enough, because it accepts a certificate without named usages for any usage.

use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::WebPkiSupportedAlgorithms;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::{self, CertificateError, RootCertStore};
use webpki::{EndEntityCert, Error, KeyUsage};

/// A usage of a certificate, from RFC 5280, 4.2.1.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Server,
    Client,
}

/// Validates certificates.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    /// The trusted authorities.
    pub(super) authorities: Arc<RootCertStore>,
    /// The accepted signature algorithms.
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Usage {
    /// All usages: a node needs both.
    pub(super) const ALL: [Self; 2] = [Self::Server, Self::Client];

    /// Its name in certificates.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "serverAuth",
            Self::Client => "clientAuth",
        }
    }

    /// The contents of its object identifier, 1.3.6.1.5.5.7.3.1 or .2, in DER.
    fn identifier(self) -> &'static [u8] {
        match self {
            Self::Server => &[0x2b, 6, 1, 5, 5, 7, 3, 1],
            Self::Client => &[0x2b, 6, 1, 5, 5, 7, 3, 2],
        }
    }
}

impl Judge {
    /// Checks that one of the authorities has signed the certificate, directly or through
    /// intermediates, and that the certificate names the usage. Intermediates need not name it, and
    /// rarely do; but the usages that one names limit the certificate.
    ///
    /// # Errors
    /// The reason for rejection.
    pub(super) fn check(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        usage: Usage,
        now: UnixTime,
    ) -> Result<(), Error> {
        let own = EndEntityCert::try_from(own)?;
        own.verify_for_usage(
            self.algorithms.all,
            &self.authorities.roots,
            between,
            now,
            KeyUsage::required_if_present(usage.identifier()),
            None,
            None,
        )?;
        self.check_named(&own, usage, now)
    }

    /// Checks each of the usages of a certificate that rustls has already accepted.
    ///
    /// # Errors
    /// The reason for rejection.
    pub(super) fn check_usages(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        usages: &[Usage],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let mut usages = usages.iter();
        let judged = usages.try_for_each(|usage| self.check(own, between, *usage, now));
        judged.map_err(|_| rustls::Error::InvalidCertificate(CertificateError::InvalidPurpose))
    }

    /// Whether the certificate itself names the usage. webpki checks every certificate of the
    /// chain, this one first; so this passes an empty chain, and where validation ends shows
    /// whether the usage was found.
    fn check_named(
        &self,
        own: &EndEntityCert<'_>,
        usage: Usage,
        now: UnixTime,
    ) -> Result<(), Error> {
        let named = KeyUsage::required(usage.identifier());
        match own.verify_for_usage(self.algorithms.all, &[], &[], now, named, None, None) {
            Ok(_) | Err(Error::UnknownIssuer) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// When a certificate that names the usage expires. In seconds since 1970.
///
/// # Errors
/// The reason for rejection.
pub(super) fn not_after_seconds(own: &CertificateDer<'_>, usage: Usage) -> Result<u64, Error> {
    let own = EndEntityCert::try_from(own)?;
    // Only an error reveals the date. No certificate is valid that late, and validity is checked first.
    let end_of_time = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    let named = KeyUsage::required(usage.identifier());
    match own.verify_for_usage(&[], &[], &[], end_of_time, named, None, None) {
        Err(Error::CertExpired { not_after, .. }) => Ok(not_after.as_secs()),
        Err(error) => Err(error),
        Ok(_) => Ok(u64::MAX),
    }
}

/// A time in UTC, in a readable form.
pub(super) fn describe(seconds: u64) -> String {
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    match time {
        // As `2026-03-01 09:30:00`, followed by the time zone.
        Some(time) => format!("{} UTC", time.naive_utc()),
        None => format!("second {seconds} since 1970"),
    }
}
