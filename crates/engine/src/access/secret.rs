//! What the state keeps of a secret (X6).

use serde::{Deserialize, Serialize};
use std::fmt;

/// The SHA-256 digest of a token's secret. A fast digest suffices, because a secret is 256 random bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SecretHash(pub [u8; 32]);

impl fmt::Debug for SecretHash {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("SecretHash")
    }
}
