//! Verifies the tokens of identity providers: JSON web tokens (X12).
//!
//! A [`KeySet`] has the public keys of an issuer, and [`Rules`] say which of its tokens are accepted. [`UnverifiedToken::parse`]
//! finds the issuer of a token, and [`UnverifiedToken::verify`] proves what it states. The crate does no I/O and reads no clock, and follows no
//! address that a token names.

mod claims;
mod json;
mod key_set;
mod public_key;
mod rules;
mod token;

#[cfg(test)]
mod signer;
#[cfg(test)]
mod tests;

pub use claims::Proof;
pub use key_set::{KEY_SET_BYTES_MAX, KEYS_MAX, KeySet, KeySetInvalid};
pub use rules::{
    ALGORITHMS, GROUPS_BYTES_MAX, GROUPS_MAX, LEEWAY_SECONDS, NAME_BYTES_MAX, Rules,
    SignatureAlgorithm,
};
pub use token::{TokenFault, TokenInvalid, UnverifiedToken};
