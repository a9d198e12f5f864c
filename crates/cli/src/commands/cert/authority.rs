//! A certificate authority and the certificates that it signs.

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

/// The file with the authority's certificate.
pub(super) const CERT: &str = "ca.pem";
/// The file with the authority's key.
pub(super) const KEY: &str = "ca-key.pem";

/// The validity of the authority's certificate.
const DAYS: i64 = 3_650;
const NAME: &str = "Flotilla development CA";

/// A certificate and its key, in PEM.
pub(super) struct Pair {
    pub(super) cert: String,
    pub(super) key: String,
}

/// The holder of a certificate.
#[derive(Clone, Debug)]
pub(super) struct Holder {
    /// The common name, for people.
    pub(super) name: &'static str,
    /// The host names and IP addresses at which the holder is reached.
    pub(super) hosts: Vec<String>,
    /// The permitted uses.
    pub(super) usages: Vec<ExtendedKeyUsagePurpose>,
}

/// Signs certificates.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority that is valid for ten years, and the files to keep of it.
    ///
    /// # Errors
    /// If the system provides no randomness.
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

    /// Reads the authority kept in the folder; `None` if the folder does not contain one.
    ///
    /// # Errors
    /// `authority_invalid` if one of its files is missing or malformed.
    pub(super) fn kept(folder: &Path) -> Result<Option<Self>, Failure> {
        let (cert, key) = (folder.join(CERT), folder.join(KEY));
        let missing = match (cert.exists(), key.exists()) {
            (true, true) => return Self::read(&cert, &key).map(Some),
            (false, false) => return Ok(None),
            (true, false) => KEY,
            (false, true) => CERT,
        };
        let message = format!(
            "expected {CERT} and {KEY} in {}, or neither, but {missing} is missing",
            folder.display()
        );
        let hint = "restore the file, or make a new authority in an empty directory";
        Err(Failure::new(Code::AuthorityInvalid, message).with_hint(hint))
    }

    fn read(cert: &Path, key: &Path) -> Result<Self, Failure> {
        let (cert_pem, key_pem) = (text(cert)?, text(key)?);
        let invalid = |path: &Path, found: &str| {
            let message = format!(
                "expected {} to be as `flo cert dev` wrote it, but {found}",
                path.display()
            );
            Failure::new(Code::AuthorityInvalid, message)
                .with_hint("make a new authority in an empty directory")
        };
        let pair = KeyPair::from_pem(&key_pem).map_err(|error| invalid(key, &error.to_string()))?;
        let der = CertificateDer::from_pem_slice(cert_pem.as_bytes())
            .map_err(|error| invalid(cert, &error.to_string()))?;
        // Certificates that it signs must name their issuer exactly as this certificate does.
        let name = name(&pair);
        let has = |part: &[u8]| der.windows(part.len()).any(|bytes| bytes == part);
        if !has(pair.public_key_raw()) || !has(name.as_bytes()) {
            return Err(invalid(cert, "it does not match the key next to it"));
        }
        let issuer = Issuer::new(own_params(&name)?, pair);
        Ok(Self { issuer })
    }

    /// A new key, and a certificate for it that is valid for `days`.
    ///
    /// # Errors
    /// `usage` if one of the hosts is neither a name nor an IP address.
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

/// The name of the authority with this key. The name depends on the key, so that authorities in one
/// bundle can be distinguished.
fn name(key: &KeyPair) -> String {
    let end = key.public_key_raw().iter().rev().take(4);
    let digits: String = end.map(|byte| format!("{byte:02x}")).collect();
    format!("{NAME} {digits}")
}

/// The parameters of the authority's own certificate.
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

/// Parameters common to all certificates: valid from yesterday, because clocks differ, to the last
/// day.
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
    Failure::new(Code::CertificateCreationFailed, message)
}
