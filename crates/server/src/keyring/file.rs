//! The file with the secret keys of a node.

use super::{KEY_BYTES, KEY_ID_BYTES_MAX, KEYS_MAX, Keyring, SecretKey};
use crate::config::ServerConfig;
use crate::secret_file::{self, SecretFileError, SecretFileKind};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file of a node that is alone in its cluster, in its data directory.
const OWN_FILE: &str = "keyring";

/// The file with the keyring.
pub(crate) static KEYRING_FILE: SecretFileKind = SecretFileKind {
    key: "keyring_file",
    needed_by: "a closed cluster with several members",
    name: "the keyring",
    secret: "secret keys",
    form: "one to 8 lines `ID KEY`",
    making: "`flo keyring generate FILE` generates it; copy the file to all nodes",
    repair: "copy the file from another node, or generate it for a new cluster with `flo keyring generate FILE`",
};

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
/// [`SecretFileError::Unwritable`].
pub fn ensure_keyring_file(file: &Path) -> Result<bool, SecretFileError> {
    secret_file::ensure(&KEYRING_FILE, file, generate_keyring)
}

/// The file of a node with this configuration. A node that is alone in its cluster writes it to its data directory, and still
/// uses it when others have joined.
pub(crate) fn of_node(config: &ServerConfig) -> Result<Option<PathBuf>, SecretFileError> {
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
pub(super) fn read(file: &Path) -> Result<Keyring, SecretFileError> {
    secret_file::read(&KEYRING_FILE, file, parse)
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
