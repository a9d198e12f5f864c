//! SHA-256 digests (ADR 0035).

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The SHA-256 digest of some bytes.
pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The SHA-256 digest of some bytes as text: 64 hexadecimal digits.
pub(crate) fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::with_capacity(64);
    for byte in sha256(bytes) {
        write!(text, "{byte:02x}").expect("a String takes every text");
    }
    text
}
