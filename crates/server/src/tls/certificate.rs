//! Judging a certificate: whether an authority has signed it, for what, and until when. What rustls asks of a
//! certificate is not enough here: to it one that names no usage is good for all.

use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::rustls::crypto::WebPkiSupportedAlgorithms;
use tokio_rustls::rustls::pki_types::{CertificateDer, UnixTime};
use tokio_rustls::rustls::{self, CertificateError, RootCertStore};
use webpki::{EndEntityCert, Error, KeyUsage};

/// What a certificate may be used for. Both are named in RFC 5280, 4.2.1.12.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usage {
    Server,
    Client,
}

/// Judges certificates.
#[derive(Clone, Debug)]
pub(super) struct Judge {
    /// Who may have signed them.
    pub(super) authorities: Arc<RootCertStore>,
    /// How they may be signed.
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Usage {
    /// All of them: what a node needs.
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
    /// Whether one of the authorities has signed the certificate, by way of those between, and it names the
    /// usage. Those between need not: authorities rarely do. But what one of them names, it limits the
    /// certificate to.
    ///
    /// # Errors
    /// What speaks against it.
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

    /// The same for each of the usages, of a certificate that rustls finds good otherwise.
    ///
    /// # Errors
    /// The one that remains.
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

    /// Whether the certificate itself names the usage. webpki asks what it asks of every certificate on the way
    /// to an authority, and of this one first: so here is no way, and where it ends says what it found.
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

    /// When the certificate ceases to be valid. In seconds since 1970.
    ///
    /// # Errors
    /// What speaks against it.
    pub(super) fn not_after_seconds(&self, own: &CertificateDer<'_>) -> Result<u64, Error> {
        // Only a refusal says it. No certificate is valid that late, and this is looked at first.
        let end_of_time = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
        match self.check(own, &[], Usage::Server, end_of_time) {
            Err(Error::CertExpired { not_after, .. }) => Ok(not_after.as_secs()),
            Err(error) => Err(error),
            Ok(()) => Ok(u64::MAX),
        }
    }
}

/// A time for people, in UTC.
pub(super) fn in_words(seconds: u64) -> String {
    let time = i64::try_from(seconds)
        .ok()
        .and_then(|seconds| chrono::DateTime::from_timestamp(seconds, 0));
    match time {
        // As `2026-03-01 09:30:00`, with what time it is behind that.
        Some(time) => format!("{} UTC", time.naive_utc()),
        None => format!("second {seconds} since 1970"),
    }
}
