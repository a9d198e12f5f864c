//! Subjects of bindings: what a caller proves besides an API token (X11, X12).

use crate::ids::{Identity, NameInvalid, SubjectValue};
use serde::{Deserialize, Serialize};
use smol_str::format_smolstr;
use std::fmt;

/// A name that a client certificate proves. Bindings and blocks name it; subjects are compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BindingSubject {
    /// A URI in the subject alternative names of a client certificate, such as a SPIFFE id.
    CertUri(SubjectValue),
    /// A DNS name in the subject alternative names of a client certificate.
    CertDns(SubjectValue),
}

/// Why a text is not a subject.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindingSubjectInvalid {
    /// It is of no known kind.
    #[error("expected a subject, `cert:uri:URI` or `cert:dns:NAME`, but it is {found:?}")]
    Kind {
        /// The text, truncated to 64 characters.
        found: String,
    },
    /// What follows its kind is not valid.
    #[error(transparent)]
    Value(#[from] NameInvalid),
}

const CERT_URI: &str = "cert:uri:";
const CERT_DNS: &str = "cert:dns:";

impl BindingSubject {
    /// Parses the text form: `cert:uri:URI` or `cert:dns:NAME`.
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
        Err(BindingSubjectInvalid::Kind {
            found: text.chars().take(64).collect(),
        })
    }

    /// On whose account a caller acts that proves the subject (X7a).
    #[must_use]
    pub fn identity(&self) -> Identity {
        let name = format_smolstr!("service:{self}");
        Identity::new(name).expect("the text of a subject has no control characters and fits")
    }

    /// The kind, as the text form begins, and the value.
    fn parts(&self) -> (&'static str, &SubjectValue) {
        match self {
            Self::CertUri(value) => (CERT_URI, value),
            Self::CertDns(value) => (CERT_DNS, value),
        }
    }
}

impl fmt::Display for BindingSubject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, value) = self.parts();
        write!(formatter, "{kind}{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::NAME_BYTES_MAX;

    #[test]
    fn a_subject_is_written_as_it_is_read() {
        for text in ["cert:uri:spiffe://acme/billing", "cert:dns:worker.acme"] {
            let subject = BindingSubject::parse(text).expect(text);
            assert_eq!(subject.to_string(), text);
        }
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
        ] {
            assert!(error(text).contains("cert:dns:NAME"), "{text}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for value in ["", "a\nb", &long] {
            let text = format!("cert:uri:{value}");
            assert!(error(&text).contains("1 to 256 bytes"), "{text}");
        }
    }

    #[test]
    fn the_longest_subject_has_an_identity() {
        let text = format!("cert:uri:{}", "x".repeat(NAME_BYTES_MAX));
        let subject = BindingSubject::parse(&text).expect("it is the longest");
        assert_eq!(subject.identity().as_str(), format!("service:{text}"));
    }
}
