//! Issuers for tests: keys of each kind, and tokens that they sign.

use crate::{KeySet, KeySetInvalid};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::PublicKeyComponents;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaKeyPair,
};
use serde_json::{Value, json};

/// ring makes no RSA keys.
const RSA_2048: &str = include_str!("../testdata/rsa_2048.pk8.base64");

pub(crate) enum Signer {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

impl Signer {
    pub(crate) fn p256() -> Self {
        Self::P256(ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING))
    }

    pub(crate) fn p384() -> Self {
        Self::P384(ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING))
    }

    pub(crate) fn ed25519() -> Self {
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("randomness");
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("a key"))
    }

    pub(crate) fn rsa() -> Self {
        let pkcs8 = STANDARD.decode(RSA_2048).expect("base64");
        Self::Rsa(RsaKeyPair::from_pkcs8(&pkcs8).expect("a key"))
    }

    /// The public key, as an issuer shows it.
    pub(crate) fn jwk(&self, id: &str) -> Value {
        match self {
            Self::P256(pair) => point("P-256", pair.public_key().as_ref(), id),
            Self::P384(pair) => point("P-384", pair.public_key().as_ref(), id),
            Self::Ed25519(pair) => {
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": base64url(pair.public_key().as_ref())})
            }
            Self::Rsa(pair) => {
                let PublicKeyComponents { n, e } =
                    PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "kid": id, "n": base64url(n), "e": base64url(e)})
            }
        }
    }

    /// A token with this header and these claims.
    pub(crate) fn sign(&self, header: &Value, claims: &Value) -> String {
        self.sign_text(header, &claims.to_string())
    }

    /// A token with this header and these claims as they are written.
    pub(crate) fn sign_text(&self, header: &Value, claims: &str) -> String {
        let message = format!("{}.{}", base64url(header.to_string()), base64url(claims));
        let signature = self.signature(header["alg"].as_str().unwrap_or(""), message.as_bytes());
        format!("{message}.{}", base64url(signature))
    }

    fn signature(&self, algorithm: &str, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match self {
            Self::P256(pair) | Self::P384(pair) => {
                let signature = pair.sign(&random, message).expect("randomness");
                signature.as_ref().to_vec()
            }
            Self::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Self::Rsa(pair) => {
                let encoding: &dyn ring::signature::RsaEncoding = match algorithm {
                    "RS384" => &RSA_PKCS1_SHA384,
                    "RS512" => &RSA_PKCS1_SHA512,
                    "PS256" => &RSA_PSS_SHA256,
                    "PS384" => &RSA_PSS_SHA384,
                    "PS512" => &RSA_PSS_SHA512,
                    _ => &RSA_PKCS1_SHA256,
                };
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(encoding, &random, message, &mut signature)
                    .expect("randomness");
                signature
            }
        }
    }
}

fn ecdsa(algorithm: &'static ring::signature::EcdsaSigningAlgorithm) -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("randomness");
    EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).expect("a key")
}

/// A key on a curve, from its uncompressed point.
fn point(curve: &str, point: &[u8], id: &str) -> Value {
    let (x, y) = point[1..].split_at(point.len() / 2);
    json!({"kty": "EC", "crv": curve, "kid": id, "x": base64url(x), "y": base64url(y)})
}

pub(crate) fn base64url(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

pub(crate) fn key_set(keys: &[Value]) -> Result<KeySet, KeySetInvalid> {
    KeySet::parse(json!({"keys": keys}).to_string().as_bytes())
}
