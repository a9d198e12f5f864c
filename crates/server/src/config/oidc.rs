//! The issuers of tokens, in a node's configuration (X12).

use crate::limits::{OIDC_ISSUERS_MAX, OIDC_TTL_SECONDS_MAX};
use crate::oidc::{KeyUrl, KeyUrlInvalid};
use flotilla_engine::ids::{IssuerName, NameInvalid};
use flotilla_oidc::{ALGORITHMS, Rules, SignatureAlgorithm};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An issuer whose tokens prove who calls. The same on all nodes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcIssuer {
    /// What the subjects of its tokens call it: 1 to 32 lower-case letters, digits or `-`.
    pub name: String,
    /// The `iss` of its tokens, exactly. Without `jwks_file` and `jwks_url`, the URL at which it is discovered.
    pub issuer: String,
    /// The `aud` of its tokens for this cluster.
    pub audience: String,
    /// A file with its keys, checked for changes while the node runs.
    pub jwks_file: Option<PathBuf>,
    /// The URL of its keys.
    pub jwks_url: Option<String>,
    /// The authorities that sign the certificates of the servers from which keys are fetched: a PEM file. Without it, those of the
    /// system.
    pub ca_file: Option<PathBuf>,
    /// Whether its keys may be fetched from private addresses.
    #[serde(default)]
    pub private_addresses: bool,
    /// The algorithms that may sign its tokens.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<SignatureAlgorithm>,
    /// How far in the future `exp` may be, in seconds.
    #[serde(default = "default_max_ttl_s")]
    pub max_ttl_s: u64,
    /// The claim with the subject.
    #[serde(default = "default_subject_claim")]
    pub subject_claim: String,
    /// The claim with the groups.
    #[serde(default = "default_groups_claim")]
    pub groups_claim: String,
    /// The groups that count: names, or beginnings of names before a `*`. Empty: all.
    #[serde(default)]
    pub groups: Vec<String>,
    /// What claims must be, or contain if they are lists.
    #[serde(default)]
    pub require: BTreeMap<String, Value>,
}

fn default_algorithms() -> Vec<SignatureAlgorithm> {
    ALGORITHMS.to_vec()
}

fn default_max_ttl_s() -> u64 {
    24 * 60 * 60
}

fn default_subject_claim() -> String {
    "sub".to_owned()
}

fn default_groups_claim() -> String {
    "groups".to_owned()
}

/// Why the issuers of a configuration are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidcConfigInvalid {
    /// There are too many.
    #[error("expected at most {OIDC_ISSUERS_MAX} issuers in `oidc`, but there are {0}")]
    TooMany(usize),
    /// The name is invalid.
    #[error("expected `name` of an issuer in `oidc` to be valid: {0}")]
    Name(NameInvalid),
    /// Two issuers have the same name or the same `issuer`.
    #[error("expected every issuer in `oidc` to have a different `{key}`, but two have {value:?}")]
    Repeated {
        /// The key.
        key: &'static str,
        /// The value of both.
        value: String,
    },
    /// A value is out of its range.
    #[error("expected `{key}` of issuer `{name}` to be {expected}, but it is {found}")]
    Value {
        /// The issuer.
        name: String,
        /// The key.
        key: &'static str,
        /// What is permitted.
        expected: String,
        /// The configured value.
        found: String,
    },
    /// The URL of keys is not permitted.
    #[error("expected `{key}` of issuer `{name}` to be a URL of keys: {found}")]
    Url {
        /// The issuer.
        name: String,
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        found: KeyUrlInvalid,
    },
}

/// Where the keys of an issuer come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// A file.
    File(PathBuf),
    /// A URL.
    Url(KeyUrl),
    /// The URL that the discovery document at this URL names.
    Discovery(KeyUrl),
}

impl OidcIssuer {
    /// Its name in subjects.
    pub(crate) fn issuer_name(&self) -> Result<IssuerName, OidcConfigInvalid> {
        IssuerName::new(self.name.as_str()).map_err(OidcConfigInvalid::Name)
    }

    /// Where its keys come from.
    pub(crate) fn source(&self) -> Result<KeySource, OidcConfigInvalid> {
        let url = |key, text: &str| {
            KeyUrl::parse(text).map_err(|found| OidcConfigInvalid::Url {
                name: self.name.clone(),
                key,
                found,
            })
        };
        match (&self.jwks_file, &self.jwks_url) {
            (Some(_), Some(found)) => {
                Err(self.invalid("jwks_url", "absent beside `jwks_file`", found))
            }
            (Some(file), None) => Ok(KeySource::File(file.clone())),
            (None, Some(text)) => Ok(KeySource::Url(url("jwks_url", text)?)),
            (None, None) => {
                let issuer = self.issuer.trim_end_matches('/');
                let text = format!("{issuer}/.well-known/openid-configuration");
                Ok(KeySource::Discovery(url("issuer", &text)?))
            }
        }
    }

    /// Which of its tokens are accepted.
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            algorithms: self.algorithms.clone(),
            ttl_seconds_max: self.max_ttl_s,
            subject_claim: self.subject_claim.clone(),
            groups_claim: self.groups_claim.clone(),
            groups: self.groups.clone(),
            require: self.require.clone(),
            ..Rules::new(&*self.issuer, &*self.audience)
        }
    }

    fn validate(&self) -> Result<(), OidcConfigInvalid> {
        self.issuer_name()?;
        for (key, text) in [
            ("issuer", &self.issuer),
            ("audience", &self.audience),
            ("subject_claim", &self.subject_claim),
            ("groups_claim", &self.groups_claim),
        ] {
            if text.is_empty() {
                return Err(self.invalid(key, "text", "empty"));
            }
        }
        if self.algorithms.is_empty() {
            return Err(self.invalid("algorithms", "a list of algorithms", "empty"));
        }
        if !(1..=OIDC_TTL_SECONDS_MAX).contains(&self.max_ttl_s) {
            let expected = format!("1 to {OIDC_TTL_SECONDS_MAX}");
            return Err(self.invalid("max_ttl_s", &expected, &self.max_ttl_s.to_string()));
        }
        self.source().map(drop)
    }

    fn invalid(&self, key: &'static str, expected: &str, found: &str) -> OidcConfigInvalid {
        OidcConfigInvalid::Value {
            name: self.name.clone(),
            key,
            expected: expected.to_owned(),
            found: found.to_owned(),
        }
    }
}

/// Checks all issuers of a configuration.
pub(super) fn validate(issuers: &[OidcIssuer]) -> Result<(), OidcConfigInvalid> {
    if issuers.len() > OIDC_ISSUERS_MAX {
        return Err(OidcConfigInvalid::TooMany(issuers.len()));
    }
    for (position, issuer) in issuers.iter().enumerate() {
        issuer.validate()?;
        let repeated = |key, of: fn(&OidcIssuer) -> &String| {
            let mut before = issuers[..position].iter();
            match before.any(|other| of(other) == of(issuer)) {
                true => Err(OidcConfigInvalid::Repeated {
                    key,
                    value: of(issuer).clone(),
                }),
                false => Ok(()),
            }
        };
        repeated("name", |issuer| &issuer.name)?;
        repeated("issuer", |issuer| &issuer.issuer)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn issuer(changes: &Value) -> Result<OidcIssuer, serde_json::Error> {
        let mut all = json!({
            "name": "corp", "issuer": "https://login.acme.example/", "audience": "flotilla",
        });
        for (key, value) in changes.as_object().expect("an object") {
            all[key] = value.clone();
        }
        serde_json::from_value(all)
    }

    #[test]
    fn an_issuer_needs_a_name_an_issuer_and_an_audience() {
        let corp = issuer(&json!({})).expect("valid");
        assert_eq!(validate(std::slice::from_ref(&corp)), Ok(()));
        let expected = "https://login.acme.example/.well-known/openid-configuration";
        let expected = KeyUrl::parse(expected).expect("a URL");
        assert_eq!(corp.source(), Ok(KeySource::Discovery(expected)));
        let rules = Rules::new("https://login.acme.example/", "flotilla");
        assert_eq!(corp.rules(), rules);
        let error = serde_json::from_value::<OidcIssuer>(json!({"name": "corp"}));
        assert!(
            error
                .expect_err("incomplete")
                .to_string()
                .contains("`issuer`")
        );
    }

    #[test]
    fn each_fault_is_named() {
        for (changes, expected) in [
            (json!({"name": "Corp"}), "the name of an issuer"),
            (
                json!({"audience": ""}),
                "`audience` of issuer `corp` to be text",
            ),
            (json!({"groups_claim": ""}), "`groups_claim`"),
            (json!({"algorithms": []}), "a list of algorithms"),
            (json!({"max_ttl_s": 0}), "1 to 31536000, but it is 0"),
            (
                json!({"issuer": "corp"}),
                "`issuer` of issuer `corp` to be a URL of keys",
            ),
            (json!({"jwks_url": "http://a.example/keys"}), "`https`"),
            (
                json!({"jwks_url": "https://a.example/", "jwks_file": "f"}),
                "absent",
            ),
        ] {
            let invalid = validate(&[issuer(&changes).expect("it has its form")]);
            let text = invalid.expect_err("invalid").to_string();
            assert!(text.contains(expected), "{text}");
        }
        for changes in [
            json!({"algorithms": ["HS256"]}),
            json!({"algorithms": ["none"]}),
            json!({"url": ""}),
        ] {
            assert!(issuer(&changes).is_err(), "{changes}");
        }
    }

    #[test]
    fn names_and_issuers_are_not_repeated() {
        let corp = issuer(&json!({})).expect("valid");
        let same_name = issuer(&json!({"issuer": "https://b.example"})).expect("valid");
        let same_issuer = issuer(&json!({"name": "other"})).expect("valid");
        for (other, key) in [(same_name, "name"), (same_issuer, "issuer")] {
            let text = validate(&[corp.clone(), other]).expect_err(key).to_string();
            assert!(text.contains(&format!("a different `{key}`")), "{text}");
        }
        let many = vec![corp; OIDC_ISSUERS_MAX + 1];
        assert_eq!(
            validate(&many),
            Err(OidcConfigInvalid::TooMany(OIDC_ISSUERS_MAX + 1))
        );
    }
}
