//! Public keys, which verify signatures with ring.

use crate::json::decode;
use crate::rules::SignatureAlgorithm;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};
use serde::Deserialize;
use std::ops::RangeInclusive;

/// The sizes of an RSA key, in bits.
const RSA_BITS: RangeInclusive<usize> = 2_048..=8_192;
/// The size of a coordinate on P-256, in bytes.
const P256_BYTES: usize = 32;
/// The size of a coordinate on P-384, in bytes.
const P384_BYTES: usize = 48;
/// The size of an Ed25519 key, in bytes.
const ED25519_BYTES: usize = 32;

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublicKey {
    /// The modulus and the exponent, without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// An uncompressed point.
    P256(Vec<u8>),
    /// An uncompressed point.
    P384(Vec<u8>),
    /// A compressed point.
    Ed25519(Vec<u8>),
}

/// What a JSON web key says about the key itself.
#[derive(Deserialize)]
pub(crate) struct KeyParameters {
    kty: String,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl PublicKey {
    /// The key, if it is of a kind and a size that verifies signatures.
    pub(crate) fn of(parameters: &KeyParameters) -> Option<Self> {
        let bytes = |text: &Option<String>| decode(text.as_deref()?.as_bytes());
        match (parameters.kty.as_str(), parameters.crv.as_deref()) {
            ("RSA", _) => {
                let (n, e) = (
                    without_zeros(bytes(&parameters.n)?),
                    without_zeros(bytes(&parameters.e)?),
                );
                let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
                RSA_BITS.contains(&bits).then_some(Self::Rsa { n, e })
            }
            ("EC", Some("P-256")) => {
                let point = point(bytes(&parameters.x)?, &bytes(&parameters.y)?, P256_BYTES);
                point.map(Self::P256)
            }
            ("EC", Some("P-384")) => {
                let point = point(bytes(&parameters.x)?, &bytes(&parameters.y)?, P384_BYTES);
                point.map(Self::P384)
            }
            ("OKP", Some("Ed25519")) => {
                let key = bytes(&parameters.x)?;
                (key.len() == ED25519_BYTES).then_some(Self::Ed25519(key))
            }
            // Shared secrets, and kinds that are not supported.
            _ => None,
        }
    }

    /// The algorithms that fit the key.
    pub(crate) fn algorithms(&self) -> &'static [SignatureAlgorithm] {
        use SignatureAlgorithm::{ES256, ES384, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512};
        match self {
            Self::Rsa { .. } => &[RS256, RS384, RS512, PS256, PS384, PS512],
            Self::P256(_) => &[ES256],
            Self::P384(_) => &[ES384],
            Self::Ed25519(_) => &[EdDSA],
        }
    }

    /// Whether the signature is one of the message by this key, with an algorithm that fits it.
    pub(crate) fn verifies(
        &self,
        algorithm: SignatureAlgorithm,
        message: &[u8],
        signature: &[u8],
    ) -> bool {
        let plain = |scheme: &'static dyn VerificationAlgorithm, key: &[u8]| {
            let key = UnparsedPublicKey::new(scheme, key);
            key.verify(message, signature).is_ok()
        };
        match (self, algorithm) {
            (Self::P256(key), SignatureAlgorithm::ES256) => plain(&ECDSA_P256_SHA256_FIXED, key),
            (Self::P384(key), SignatureAlgorithm::ES384) => plain(&ECDSA_P384_SHA384_FIXED, key),
            (Self::Ed25519(key), SignatureAlgorithm::EdDSA) => plain(&ED25519, key),
            (Self::Rsa { n, e }, algorithm) => {
                rsa_parameters(algorithm).is_some_and(|parameters| {
                    let key = RsaPublicKeyComponents { n, e };
                    key.verify(parameters, message, signature).is_ok()
                })
            }
            (Self::P256(_) | Self::P384(_) | Self::Ed25519(_), _) => false,
        }
    }
}

fn rsa_parameters(algorithm: SignatureAlgorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        SignatureAlgorithm::RS256 => &RSA_PKCS1_2048_8192_SHA256,
        SignatureAlgorithm::RS384 => &RSA_PKCS1_2048_8192_SHA384,
        SignatureAlgorithm::RS512 => &RSA_PKCS1_2048_8192_SHA512,
        SignatureAlgorithm::PS256 => &RSA_PSS_2048_8192_SHA256,
        SignatureAlgorithm::PS384 => &RSA_PSS_2048_8192_SHA384,
        SignatureAlgorithm::PS512 => &RSA_PSS_2048_8192_SHA512,
        SignatureAlgorithm::ES256 | SignatureAlgorithm::ES384 | SignatureAlgorithm::EdDSA => {
            return None;
        }
    })
}

/// An uncompressed point with coordinates of this size.
fn point(x: Vec<u8>, y: &[u8], size: usize) -> Option<Vec<u8>> {
    let is_valid = x.len() == size && y.len() == size;
    is_valid.then(|| [&[4][..], &x, y].concat())
}

/// ring refuses leading zeros, which some issuers write.
fn without_zeros(mut number: Vec<u8>) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.drain(..zeros);
    number
}
