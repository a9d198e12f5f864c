//! The file with the secret keys of a node.

use super::{KEY_BYTES, KEY_ID_BYTES_MAX, KEYS_MAX, Keyring, SecretKey};
use crate::config::ServerConfig;
use crate::secret_file::{self, SecretFileError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// The file of a node that is alone in its cluster, in its data directory.
const OWN_FILE: &str = "keyring";

/// Why a node cannot use its keyring.
#[derive(Debug, thiserror::Error)]
pub enum KeyringFileError {
    /// The members of a closed cluster must have the same keys.
    #[error(
        "expected `keyring_file`, because a closed cluster with several members needs it, but it is not given"
    )]
    NotConfigured,
    /// The file cannot be read.
    #[error("expected to read the keyring from {}, but that failed", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// Every user of the machine can use the file.
    #[error(
        "expected {} to be accessible to its owner and group only, since it contains secret keys, but its mode is {mode:o}", .file.display()
    )]
    AccessibleToOthers {
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file does not contain keys.
    #[error("expected {} to contain one to {KEYS_MAX} lines `ID KEY`, but {found}", .file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// What it contains instead, without any key.
        found: String,
    },
    /// The file of a new keyring cannot be written.
    #[error("expected to write a keyring to {}, but that failed", .0.display())]
    Unwritable(PathBuf, #[source] io::Error),
}

impl KeyringFileError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotConfigured => {
                "`flo keyring generate FILE` generates it; copy the file to all nodes. To try an open cluster, pass `--access open`"
            }
            Self::Unreadable(..) => {
                "`flo keyring generate FILE` generates it; copy the file to all nodes"
            }
            Self::AccessibleToOthers { .. } => "`chmod o= FILE` removes access for other users",
            Self::Malformed { .. } => {
                "copy the file from another node, or generate it for a new cluster with `flo keyring generate FILE`"
            }
            Self::Unwritable(..) => "make the directory of the file writable for this user",
        }
    }

    /// Whether the settings or the file must change before the node can start.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        !matches!(self, Self::Unwritable(..))
    }
}

/// The text of a new keyring with one key.
#[must_use]
pub fn generate_keyring() -> String {
    let key: [u8; KEY_BYTES] = rand::random();
    let id: u32 = rand::random();
    format!("k{id:08x} {}\n", STANDARD.encode(key))
}

/// Writes a new keyring to the file, unless the file exists. Only its owner can read it. Returns whether it was written.
///
/// # Errors
/// [`KeyringFileError::Unwritable`].
pub fn ensure_keyring_file(file: &Path) -> Result<bool, KeyringFileError> {
    secret_file::ensure(file, generate_keyring)
        .map_err(|error| KeyringFileError::Unwritable(file.to_owned(), error))
}

/// The file of a node with this configuration. A node that is alone in its cluster writes it to its data directory, and still
/// uses it when others have joined.
pub(crate) fn of_node(config: &ServerConfig) -> Result<Option<PathBuf>, KeyringFileError> {
    if let Some(file) = &config.keyring_file {
        return Ok(Some(file.clone()));
    }
    let file = config.data_dir.join(OWN_FILE);
    if config.join.is_none() && config.members().len() == 1 {
        ensure_keyring_file(&file)?;
    }
    Ok(file.exists().then_some(file))
}

/// Reads the keys from the file.
pub(super) fn read(file: &Path) -> Result<Keyring, KeyringFileError> {
    let malformed = |found: String| KeyringFileError::Malformed {
        file: file.to_owned(),
        found,
    };
    let text = secret_file::read(file).map_err(|error| match error {
        SecretFileError::Unreadable(error) => KeyringFileError::Unreadable(file.to_owned(), error),
        SecretFileError::AccessibleToOthers(mode) => KeyringFileError::AccessibleToOthers {
            file: file.to_owned(),
            mode,
        },
        SecretFileError::Malformed => malformed("it is something else".to_owned()),
    })?;
    parse(&text).map_err(malformed)
}

/// Parses lines `ID KEY`; empty lines and those that begin with `#` are left out.
fn parse(text: &str) -> Result<Keyring, String> {
    let mut keys = Vec::new();
    let mut ids = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let number = index + 1;
        let key = parse_key(line).ok_or_else(|| format!("line {number} is something else"))?;
        if !ids.insert(key.id.clone()) {
            return Err(format!("line {number} repeats the id `{}`", key.id));
        }
        keys.push(key);
    }
    match keys.len() {
        1..=KEYS_MAX => Ok(Keyring { keys }),
        count => Err(format!("it has {count}")),
    }
}

fn parse_key(line: &str) -> Option<SecretKey> {
    let (id, key) = line.split_once(char::is_whitespace)?;
    let is_id = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_valid = (1..=KEY_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(is_id);
    let key = STANDARD.decode(key.trim_start()).ok()?;
    let key = <[u8; KEY_BYTES]>::try_from(key).ok()?;
    is_valid.then(|| SecretKey::new(id.to_owned(), &key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> String {
        STANDARD.encode([byte; KEY_BYTES])
    }

    #[test]
    fn the_first_key_is_active() {
        let text = format!("# rotated in May\nk2 {}\n\n  k1\t{}  \n", key(2), key(1));
        let keyring = parse(&text).expect("it is valid");
        let ids: Vec<&str> = keyring.keys.iter().map(|key| key.id.as_str()).collect();
        assert_eq!(ids, ["k2", "k1"]);
        assert_eq!(keyring.active().map(|key| key.id.as_str()), Some("k2"));
        assert!(keyring.find("k1").is_some() && keyring.find("k3").is_none());
    }

    #[test]
    fn each_fault_is_named_without_the_key() {
        let (one, long) = (key(1), "k".repeat(KEY_ID_BYTES_MAX + 1));
        let many: Vec<String> = (0..=KEYS_MAX).map(|n| format!("k{n} {one}")).collect();
        for (text, found) in [
            ("# nothing".to_owned(), "it has 0"),
            (many.join("\n"), "it has 9"),
            (format!("k1 {one}\nk1 {one}"), "line 2 repeats the id `k1`"),
            (format!("k1 {one}\n{one}"), "line 2 is something else"),
            (format!("K1 {one}"), "line 1 is something else"),
            (format!("{long} {one}"), "line 1 is something else"),
            (format!("k1 {one} {one}"), "line 1 is something else"),
            (format!("k1 {}", &one[4..]), "line 1 is something else"),
        ] {
            assert_eq!(parse(&text).expect_err(&text), found);
        }
    }

    #[test]
    fn a_single_node_keeps_the_keyring_that_it_has_written_when_others_join() {
        let data = tempfile::tempdir().expect("a directory");
        let alone = ServerConfig {
            data_dir: data.path().to_owned(),
            ..ServerConfig::default()
        };
        let joining = ServerConfig {
            join: Some("127.0.0.1:1".to_owned()),
            ..alone.clone()
        };
        assert_eq!(of_node(&joining).expect("none is needed"), None);
        let file = of_node(&alone).expect("room").expect("it is written");
        let summary = read(&file).expect("it is valid").summary();
        assert_eq!(of_node(&alone).expect("it exists"), Some(file.clone()));
        assert_eq!(of_node(&joining).expect("it exists"), Some(file.clone()));
        assert_eq!(read(&file).expect("it is valid").summary(), summary);
        let other = parse(&generate_keyring()).expect("it is valid");
        assert_ne!(other.summary(), summary);
    }
}
