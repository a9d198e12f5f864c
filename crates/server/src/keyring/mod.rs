//! The secret keys that all nodes of a cluster share (X34).
//!
//! They are in a file on each node, and never in the log, in a snapshot or in a backup. What they protect stays protected if
//! one of those is stolen. [`file`] reads and writes the file, [`Keyring`] derives keys for single purposes, and
//! [`NodeKeyring`] has the keyring that a node uses, which changes when its file does. [`task_token`] authenticates the tokens
//! of tasks, and [`member_secret`] the calls between members.

mod file;
mod member_secret;
mod reload;
mod task_token;

pub use file::{ensure_keyring_file, generate_keyring};

pub(crate) use file::{KEYRING_FILE, of_node as keyring_file};
pub(crate) use member_secret::KeyringMemberSecret;
pub(crate) use reload::start as keep_fresh;
pub(crate) use task_token::ShownTaskToken;

use crate::secret_file::SecretFileError;
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;
use std::fmt::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::watch;

/// The size of a secret key, in bytes.
const KEY_BYTES: usize = 32;
/// The maximum number of keys.
const KEYS_MAX: usize = 8;
// The form of the file names it.
const _: () = assert!(KEYS_MAX == 8);
/// The maximum size of a key's id, in bytes.
const KEY_ID_BYTES_MAX: usize = 16;
/// How many bytes of a key's check value are shown.
const CHECK_BYTES: usize = 8;

/// The secret keys of a node. The first is the active one; the others only verify.
pub(crate) struct Keyring {
    keys: Vec<SecretKey>,
}

/// What a node derives from one secret key.
struct SecretKey {
    id: String,
    /// Tells keys with the same id apart. It does not reveal the key.
    check: String,
    task_tokens: hmac::Key,
    members: hmac::Key,
}

/// The keyring that a node uses.
#[derive(Debug)]
pub(crate) struct NodeKeyring {
    /// The file; `None` if the node has no keyring.
    file: Option<PathBuf>,
    // A std lock and not tokio's because it is never held across an await.
    current: RwLock<Arc<Keyring>>,
    changes: watch::Sender<u64>,
}

impl Keyring {
    const EMPTY: Self = Self { keys: Vec::new() };

    fn active(&self) -> Option<&SecretKey> {
        self.keys.first()
    }

    fn find(&self, id: &str) -> Option<&SecretKey> {
        self.keys.iter().find(|key| key.id == id)
    }

    /// The ids of the keys with their check values, the active one first.
    fn summary(&self) -> String {
        let keys = self.keys.iter();
        let shown: Vec<String> = keys
            .map(|key| format!("{}:{}", key.id, key.check))
            .collect();
        shown.join(" ")
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.summary())
    }
}

impl SecretKey {
    fn new(id: String, key: &[u8; KEY_BYTES]) -> Self {
        let key = Salt::new(HKDF_SHA256, b"flotilla keyring v1").extract(key);
        Self {
            id,
            check: check_value(&key),
            task_tokens: derive(&key, b"task token v1"),
            members: derive(&key, b"flotilla peer v1"),
        }
    }
}

impl NodeKeyring {
    /// The keyring in this file; an empty one without a file.
    ///
    /// # Errors
    /// [`SecretFileError`] if the file cannot be used.
    pub(crate) fn load(file: Option<PathBuf>) -> Result<Self, SecretFileError> {
        let keyring = match &file {
            Some(file) => file::read(file)?,
            None => Keyring::EMPTY,
        };
        Ok(Self {
            file,
            ..Self::of(keyring)
        })
    }

    /// A keyring that does not change.
    fn of(keyring: Keyring) -> Self {
        Self {
            file: None,
            current: RwLock::new(Arc::new(keyring)),
            changes: watch::Sender::new(0),
        }
    }

    /// Counts the changes of the keyring.
    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Whether there is no key.
    pub(crate) fn is_empty(&self) -> bool {
        self.current().keys.is_empty()
    }

    /// The ids of the keys with their check values, the active one first; empty without a key. Two nodes that show the same have
    /// the same keys.
    pub(crate) fn summary(&self) -> String {
        self.current().summary()
    }

    /// Reads the file again; true if it has other keys now.
    ///
    /// # Errors
    /// [`SecretFileError`] if the file cannot be used; the old keys stay in use.
    fn refresh(&self) -> Result<bool, SecretFileError> {
        let Some(file) = &self.file else {
            return Ok(false);
        };
        let keyring = file::read(file)?;
        let is_new = keyring.summary() != self.summary();
        if is_new {
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(keyring);
            self.changes.send_modify(|changes| *changes += 1);
        }
        Ok(is_new)
    }

    fn current(&self) -> Arc<Keyring> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Derives an HMAC key for one purpose.
fn derive(key: &Prk, purpose: &[u8]) -> hmac::Key {
    let purpose = [purpose];
    let derived = key.expand(&purpose, hmac::HMAC_SHA256);
    hmac::Key::from(derived.expect("a digest is not too long to be derived"))
}

fn check_value(key: &Prk) -> String {
    let check = derive(key, b"check v1");
    let tag = hmac::sign(&check, b"");
    let mut text = String::new();
    for byte in tag.as_ref().iter().take(CHECK_BYTES) {
        write!(text, "{byte:02x}").expect("a string has room");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_tells_keys_apart_and_does_not_contain_them() {
        let keyring = |id: &str, byte| Keyring {
            keys: vec![SecretKey::new(id.to_owned(), &[byte; KEY_BYTES])],
        };
        let summary = keyring("k1", 1).summary();
        assert_eq!(summary, keyring("k1", 1).summary());
        assert_ne!(summary, keyring("k1", 2).summary());
        assert_ne!(summary, keyring("k2", 1).summary());
        assert_eq!(format!("{:?}", keyring("k1", 1)), summary);
        assert_eq!(Keyring::EMPTY.summary(), "");
    }

    #[test]
    fn a_key_has_the_check_value_that_is_published() {
        let key = SecretKey::new("k1".to_owned(), &[7; KEY_BYTES]);
        assert_eq!(key.check, "dc8c7b4af28f4702");
    }
}
