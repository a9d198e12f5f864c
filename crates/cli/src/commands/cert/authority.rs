//! An authority for certificates, and what it signs.

use crate::code::Code;
use crate::failure::Failure;
use crate::file;
use crate::time;
use chrono::{DateTime, Datelike, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::fs;
use std::path::Path;

/// The file of an authority's certificate.
pub(super) const CERT: &str = "ca.pem";
/// The file of its key.
pub(super) const KEY: &str = "ca-key.pem";

/// How long the authority itself is valid.
const DAYS: i64 = 3_650;
const NAME: &str = "Flotilla development CA";

/// A certificate and its key, in PEM.
pub(super) struct Pair {
    pub(super) cert: String,
    pub(super) key: String,
}

/// Who a certificate is for.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    /// What people read in it.
    pub(super) name: &'static str,
    /// The names and IP addresses under which it is connected to.
    pub(super) hosts: Vec<String>,
    /// What it may be used for.
    pub(super) usages: Vec<ExtendedKeyUsagePurpose>,
}

/// Signs certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes one, valid for ten years, and what is to be kept of it.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub(super) fn new() -> Result<(Self, Pair), Failure> {
        let key = KeyPair::generate().map_err(failed)?;
        let params = own_params(&name(&key))?;
        let cert = params.self_signed(&key).map_err(failed)?.pem();
        let pair = Pair {
            cert,
            key: key.serialize_pem(),
        };
        let issuer = Issuer::new(params, key);
        Ok((Self { issuer }, pair))
    }

    /// The one that is kept in the folder; `None` when there is none.
    ///
    /// # Errors
    /// `authority_invalid` when one of its files is missing, or is no such file.
    pub(super) fn kept(folder: &Path) -> Result<Option<Self>, Failure> {
        let (cert, key) = (folder.join(CERT), folder.join(KEY));
        let missing = match (cert.exists(), key.exists()) {
            (true, true) => return Self::read(&cert, &key).map(Some),
            (false, false) => return Ok(None),
            (true, false) => KEY,
            (false, true) => CERT,
        };
        let message = format!(
            "expected {CERT} and {KEY} in {}, or none of them, but {missing} is missing",
            folder.display()
        );
        let hint = "put it back, or make another authority in an empty folder";
        Err(Failure::new(Code::AuthorityInvalid, message).with_hint(hint))
    }

    fn read(cert: &Path, key: &Path) -> Result<Self, Failure> {
        let (cert_pem, key_pem) = (text(cert)?, text(key)?);
        let invalid = |path: &Path, found: &str| {
            let message = format!(
                "expected {} to be as `flo cert dev` has made it, but {found}",
                path.display()
            );
            Failure::new(Code::AuthorityInvalid, message)
                .with_hint("make another authority in an empty folder")
        };
        let pair = KeyPair::from_pem(&key_pem).map_err(|error| invalid(key, &error.to_string()))?;
        let der = CertificateDer::from_pem_slice(cert_pem.as_bytes())
            .map_err(|error| invalid(cert, &error.to_string()))?;
        // What it signs must name it as it is named there.
        let name = name(&pair);
        let has = |part: &[u8]| der.windows(part.len()).any(|bytes| bytes == part);
        if !has(pair.public_key_raw()) || !has(name.as_bytes()) {
            return Err(invalid(cert, "it is not that of the key beside it"));
        }
        let issuer = Issuer::new(own_params(&name)?, pair);
        Ok(Self { issuer })
    }

    /// A new key, and its certificate for so many days.
    ///
    /// # Errors
    /// `usage` when one of the hosts is no name and no IP address.
    pub(super) fn sign(&self, holder: Holder, days: u16) -> Result<Pair, Failure> {
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = params(holder.name, holder.hosts, i64::from(days))?;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = holder.usages;
        params.use_authority_key_identifier_extension = true;
        let cert = params.signed_by(&key, &self.issuer).map_err(failed)?;
        Ok(Pair {
            cert: cert.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// The name of the authority with this key. Two of one name in a bundle would be hard to tell apart.
fn name(key: &KeyPair) -> String {
    let end = key.public_key_raw().iter().rev().take(4);
    let digits: String = end.map(|byte| format!("{byte:02x}")).collect();
    format!("{NAME} {digits}")
}

/// An authority's own certificate.
fn own_params(name: &str) -> Result<CertificateParams, Failure> {
    let mut params = params(name, Vec::new(), DAYS)?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    Ok(params)
}

/// What all certificates have in common: valid from yesterday, since clocks differ, through the last day.
fn params(name: &str, hosts: Vec<String>, days: i64) -> Result<CertificateParams, Failure> {
    let mut params = CertificateParams::new(hosts).map_err(|error| {
        let message = format!("expected --host to be a name or an IP address, but {error}");
        Failure::new(Code::Usage, message)
    })?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let now = i64::try_from(time::now_ms()).unwrap_or_default();
    let now = DateTime::from_timestamp_millis(now).unwrap_or_default();
    let midnight = |time: DateTime<Utc>| {
        let byte = |number: u32| u8::try_from(number).expect("months and days are below 32");
        date_time_ymd(time.year(), byte(time.month()), byte(time.day()))
    };
    params.not_before = midnight(now - TimeDelta::days(1));
    params.not_after = midnight(now + TimeDelta::days(days + 1));
    Ok(params)
}

fn text(path: &Path) -> Result<String, Failure> {
    let name = path.display().to_string();
    fs::read_to_string(path)
        .map_err(|error| file::unreadable(Code::AuthorityInvalid, &name, &error))
}

fn failed(error: rcgen::Error) -> Failure {
    let message = format!("expected to make a certificate, but {error}");
    Failure::new(Code::CertificatesNotMade, message)
}
