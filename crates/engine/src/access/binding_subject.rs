//! Subjects of bindings: what a caller proves besides an API token (X11, X12).

use crate::ids::{Identity, IssuerName, NameInvalid, SubjectValue};
use serde::{Deserialize, Serialize};
use smol_str::format_smolstr;
use std::fmt;

/// A name that a client certificate or the token of an issuer proves. Bindings and blocks name it; subjects are compared byte for
/// byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BindingSubject {
    /// A URI in the subject alternative names of a client certificate, such as a SPIFFE id.
    CertUri(SubjectValue),
    /// A DNS name in the subject alternative names of a client certificate.
    CertDns(SubjectValue),
    /// The subject of the tokens of an issuer.
    OidcSub(IssuerName, SubjectValue),
    /// A group that the tokens of an issuer name.
    OidcGroup(IssuerName, SubjectValue),
}

/// Why a text is not a subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindingSubjectInvalid {
    /// It is of no known kind.
    #[error(
        "expected a subject, `cert:uri:URI`, `cert:dns:NAME`, `oidc:ISSUER:sub:SUB` or `oidc:ISSUER:group:GROUP`, but it is {found:?}"
    )]
    Kind {
        /// The text, truncated to 64 characters.
        found: String,
    },
    /// A part of it is not valid.
    #[error(transparent)]
    Part(#[from] NameInvalid),
}

const CERT_URI: &str = "cert:uri:";
const CERT_DNS: &str = "cert:dns:";
const OIDC: &str = "oidc:";
const SUB: &str = "sub:";
const GROUP: &str = "group:";

impl BindingSubject {
    /// Parses the text form: `cert:uri:URI`, `cert:dns:NAME`, `oidc:ISSUER:sub:SUB` or `oidc:ISSUER:group:GROUP`. The name of an
    /// issuer has no colon, so a text has one meaning.
    ///
    /// # Errors
    /// [`BindingSubjectInvalid`] for any other text.
    pub fn parse(text: &str) -> Result<Self, BindingSubjectInvalid> {
        if let Some(value) = text.strip_prefix(CERT_URI) {
            return Ok(Self::CertUri(SubjectValue::new(value)?));
        }
        if let Some(value) = text.strip_prefix(CERT_DNS) {
            return Ok(Self::CertDns(SubjectValue::new(value)?));
        }
        let of_issuer = text
            .strip_prefix(OIDC)
            .and_then(|rest| rest.split_once(':'));
        if let Some((issuer, rest)) = of_issuer {
            if let Some(value) = rest.strip_prefix(SUB) {
                return Ok(Self::OidcSub(
                    IssuerName::new(issuer)?,
                    SubjectValue::new(value)?,
                ));
            }
            if let Some(value) = rest.strip_prefix(GROUP) {
                return Ok(Self::OidcGroup(
                    IssuerName::new(issuer)?,
                    SubjectValue::new(value)?,
                ));
            }
        }
        Err(BindingSubjectInvalid::Kind {
            found: text.chars().take(64).collect(),
        })
    }

    /// On whose account a caller acts that proves the subject (X7a): a user, if an issuer knows it, or else a service.
    #[must_use]
    pub fn identity(&self) -> Identity {
        let kind = match self {
            Self::CertUri(_) | Self::CertDns(_) => "service",
            Self::OidcSub(..) | Self::OidcGroup(..) => "user",
        };
        let name = format_smolstr!("{kind}:{self}");
        Identity::new(name).expect("the text of a subject has no control characters and fits")
    }
}

impl fmt::Display for BindingSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CertUri(value) => write!(formatter, "{CERT_URI}{value}"),
            Self::CertDns(value) => write!(formatter, "{CERT_DNS}{value}"),
            Self::OidcSub(issuer, value) => write!(formatter, "{OIDC}{issuer}:{SUB}{value}"),
            Self::OidcGroup(issuer, value) => write!(formatter, "{OIDC}{issuer}:{GROUP}{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::NAME_BYTES_MAX;

    #[test]
    fn a_subject_is_written_as_it_is_read() {
        for text in [
            "cert:uri:spiffe://acme/billing",
            "cert:dns:worker.acme",
            "oidc:corp:sub:ada",
            "oidc:corp-2:group:sub:ada",
            "oidc:corp:sub:repo:acme/shop:ref:refs/heads/main",
        ] {
            let subject = BindingSubject::parse(text).expect(text);
            assert_eq!(subject.to_string(), text);
        }
    }

    #[test]
    fn no_subject_of_an_issuer_passes_for_a_group_or_for_another_issuer() {
        let parse = |text| BindingSubject::parse(text).expect(text);
        let (issuer, value) = (
            IssuerName::new("corp").expect("a name"),
            SubjectValue::new("group:admins").expect("a value"),
        );
        let sub = parse("oidc:corp:sub:group:admins");
        assert_eq!(sub, BindingSubject::OidcSub(issuer, value));
        assert_ne!(sub, parse("oidc:corp:group:admins"));
        assert!(BindingSubject::parse("oidc:corp:x:group:admins").is_err());
    }

    #[test]
    fn a_text_that_is_no_subject_is_refused_with_its_fault() {
        let error = |text: &str| BindingSubject::parse(text).expect_err(text).to_string();
        for text in [
            "",
            "billing",
            "cert:",
            "cert:cn:billing",
            "CERT:DNS:billing",
            "oidc:corp",
            "oidc:corp:ada",
            "oidc:corp:subject:ada",
        ] {
            assert!(error(text).contains("cert:dns:NAME"), "{text}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for value in ["", "a\nb", &long] {
            for kind in ["cert:uri:", "oidc:corp:sub:", "oidc:corp:group:"] {
                let text = format!("{kind}{value}");
                assert!(error(&text).contains("1 to 256 bytes"), "{text}");
            }
        }
        for issuer in ["", "Corp", "a_b", &"x".repeat(33)] {
            let text = format!("oidc:{issuer}:sub:ada");
            assert!(error(&text).contains("the name of an issuer"), "{text}");
        }
    }

    #[test]
    fn the_longest_subject_has_an_identity() {
        let value = "x".repeat(NAME_BYTES_MAX);
        let issuer = "i".repeat(32);
        for (kind, text) in [
            ("service", format!("cert:uri:{value}")),
            ("user", format!("oidc:{issuer}:sub:{value}")),
            ("user", format!("oidc:{issuer}:group:{value}")),
        ] {
            let subject = BindingSubject::parse(&text).expect("it is the longest");
            assert_eq!(subject.identity().as_str(), format!("{kind}:{text}"));
        }
    }
}
