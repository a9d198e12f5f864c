//! Which tokens of an issuer are accepted (X12).

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// By how much the clocks of an issuer and of the cluster may differ, in seconds.
pub const LEEWAY_SECONDS: u64 = 60;
/// The size of a subject or of a group, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// The groups of a token that count.
pub const GROUPS_MAX: usize = 64;
/// As [`GROUPS_MAX`], in bytes.
pub const GROUPS_BYTES_MAX: usize = 4 << 10;

/// An algorithm that verifies a signature with a public key. Algorithms with shared secrets have no place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[expect(missing_docs, reason = "the names are those of RFC 7518 and RFC 8037")]
pub enum SignatureAlgorithm {
    RS256,
    RS384,
    RS512,
    PS256,
    PS384,
    PS512,
    ES256,
    ES384,
    EdDSA,
}

/// The algorithms that are accepted by default.
pub const ALGORITHMS: [SignatureAlgorithm; 5] = [
    SignatureAlgorithm::RS256,
    SignatureAlgorithm::PS256,
    SignatureAlgorithm::ES256,
    SignatureAlgorithm::ES384,
    SignatureAlgorithm::EdDSA,
];

impl SignatureAlgorithm {
    const ALL: [Self; 9] = [
        Self::RS256,
        Self::RS384,
        Self::RS512,
        Self::PS256,
        Self::PS384,
        Self::PS512,
        Self::ES256,
        Self::ES384,
        Self::EdDSA,
    ];

    /// The algorithm with this name, which tokens and keys use; `None` for one with a shared secret, or an unknown one.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Its name in tokens and keys.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RS256 => "RS256",
            Self::RS384 => "RS384",
            Self::RS512 => "RS512",
            Self::PS256 => "PS256",
            Self::PS384 => "PS384",
            Self::PS512 => "PS512",
            Self::ES256 => "ES256",
            Self::ES384 => "ES384",
            Self::EdDSA => "EdDSA",
        }
    }
}

/// Which tokens of an issuer are accepted, and what they prove.
///
/// The name of a claim that begins with `/` is a path through nested objects, such as `/realm_access/roles`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The issuer: `iss`, exactly.
    pub issuer: String,
    /// For whom tokens are issued: `aud`, or one of its items.
    pub audience: String,
    /// The algorithms that may sign them.
    pub algorithms: Vec<SignatureAlgorithm>,
    /// How far in the future `exp` may be, in seconds.
    pub ttl_seconds_max: u64,
    /// The claim with the subject.
    pub subject_claim: String,
    /// The claim with the groups: a list, or a single group.
    pub groups_claim: String,
    /// The groups that count: names, or beginnings of names before a `*`. Empty: all.
    pub groups: Vec<String>,
    /// What claims must be, or contain if they are lists.
    pub require: BTreeMap<String, Value>,
}

impl Rules {
    /// The rules for the tokens that an issuer makes for an audience, with default values.
    #[must_use]
    pub fn new(issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        Self {
            issuer: issuer.into(),
            audience: audience.into(),
            algorithms: ALGORITHMS.to_vec(),
            ttl_seconds_max: 24 * 60 * 60,
            subject_claim: "sub".to_owned(),
            groups_claim: "groups".to_owned(),
            groups: Vec::new(),
            require: BTreeMap::new(),
        }
    }

    /// Whether a group counts.
    pub(crate) fn counts(&self, group: &str) -> bool {
        let matches = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => group.starts_with(beginning),
            None => group == pattern,
        };
        self.groups.is_empty() || self.groups.iter().any(matches)
    }
}
