//! SHA-256 digests as text (ADR 0035).

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The SHA-256 digest of some bytes: 64 hexadecimal digits.
pub(crate) fn sha256_hex(bytes: impl AsRef<[u8]>) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a String takes every text");
    }
    text
}
