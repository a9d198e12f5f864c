//! Files with secrets: written completely or not at all, and read only if other users cannot access them.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 4_096;
/// The permission bits of users who neither own the file nor are in its group.
const OTHERS: u32 = 0o007;

/// A kind of secret file, by the texts that describe it.
#[derive(Debug)]
pub struct SecretFileKind {
    /// The key of the configuration that names the file.
    pub(crate) key: &'static str,
    /// The nodes that do not start without it.
    pub(crate) needed_by: &'static str,
    /// What it is.
    pub(crate) name: &'static str,
    /// What it contains.
    pub(crate) secret: &'static str,
    /// The form of its contents.
    pub(crate) form: &'static str,
    /// How to make it.
    pub(crate) making: &'static str,
    /// How to replace contents of another form.
    pub(crate) repair: &'static str,
}

/// Why a secret file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// Several nodes must have the same file.
    #[error("expected `{}`, because {} needs it, but it is not given", .0.key, .0.needed_by)]
    NotConfigured(&'static SecretFileKind),
    /// It cannot be read.
    #[error("expected to read {} from {}, but that failed", .kind.name, .file.display())]
    Unreadable {
        /// Its kind.
        kind: &'static SecretFileKind,
        /// The file.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// Every user of the machine can use it.
    #[error(
        "expected {} to be accessible to its owner and group only, since it contains {}, but its mode is {mode:o}",
        .file.display(), .kind.secret
    )]
    AccessibleToOthers {
        /// Its kind.
        kind: &'static SecretFileKind,
        /// The file.
        file: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It has other contents.
    #[error("expected {} to contain {}, but {found}", .file.display(), .kind.form)]
    Malformed {
        /// Its kind.
        kind: &'static SecretFileKind,
        /// The file.
        file: PathBuf,
        /// What it contains instead, without any secret.
        found: String,
    },
    /// A new one cannot be written.
    #[error("expected to write {} to {}, but that failed", .kind.name, .file.display())]
    Unwritable {
        /// Its kind.
        kind: &'static SecretFileKind,
        /// The file.
        file: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
}

impl SecretFileError {
    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::NotConfigured(kind) => {
                format!(
                    "{}. To try an open cluster, pass `--access open`",
                    kind.making
                )
            }
            Self::Unreadable { kind, .. } => kind.making.to_owned(),
            Self::AccessibleToOthers { .. } => {
                "`chmod o= FILE` removes access for other users".to_owned()
            }
            Self::Malformed { kind, .. } => kind.repair.to_owned(),
            Self::Unwritable { .. } => {
                "make the directory of the file writable for this user".to_owned()
            }
        }
    }

    /// Whether the settings or the file must change before the node can start.
    #[must_use]
    pub fn is_configuration(&self) -> bool {
        !matches!(self, Self::Unwritable { .. })
    }
}

/// Reads a file, unless other users than its owner and the members of its group can access it, and parses its text. `parse` says
/// what the file contains instead.
///
/// # Errors
/// [`SecretFileError`].
pub(crate) fn read<T>(
    kind: &'static SecretFileKind,
    file: &Path,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, SecretFileError> {
    let unreadable = |source| SecretFileError::Unreadable {
        kind,
        file: file.to_owned(),
        source,
    };
    let malformed = |found| SecretFileError::Malformed {
        kind,
        file: file.to_owned(),
        found,
    };
    let opened = File::open(file).map_err(unreadable)?;
    let metadata = opened.metadata().map_err(unreadable)?;
    if metadata.mode() & OTHERS != 0 {
        return Err(SecretFileError::AccessibleToOthers {
            kind,
            file: file.to_owned(),
            mode: metadata.mode() & 0o777,
        });
    }
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(malformed("it does not".to_owned()));
    }
    let mut text = String::new();
    let mut limited = opened.take(FILE_BYTES_MAX);
    match limited.read_to_string(&mut text) {
        Ok(_) => parse(&text).map_err(malformed),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            Err(malformed("it does not".to_owned()))
        }
        Err(error) => Err(unreadable(error)),
    }
}

/// Writes the text to the file, unless the file exists. Only its owner can read it. Returns whether it was written.
///
/// # Errors
/// [`SecretFileError::Unwritable`].
pub(crate) fn ensure(
    kind: &'static SecretFileKind,
    file: &Path,
    text: impl FnOnce() -> String,
) -> Result<bool, SecretFileError> {
    // Most starts find it; and its directory may be read-only then.
    if file.exists() {
        return Ok(false);
    }
    match create(file, 0o600, text().as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(source) => Err(SecretFileError::Unwritable {
            kind,
            file: file.to_owned(),
            source,
        }),
    }
}

/// Writes a new file with these permission bits, durably; its directory is created if it does not exist. A crash never leaves a part
/// of the file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the file exists, which is left unchanged; another I/O error.
pub(crate) fn create(file: &Path, mode: u32, contents: &[u8]) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let mut draft = NamedTempFile::new_in(folder)?;
    // The umask of the process does not limit these.
    draft
        .as_file()
        .set_permissions(Permissions::from_mode(mode))?;
    draft.write_all(contents)?;
    draft.as_file().sync_all()?;
    draft.persist_noclobber(file)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: SecretFileKind = SecretFileKind {
        key: "secret_file",
        needed_by: "a cluster",
        name: "the secret",
        secret: "a secret",
        form: "text",
        making: "make it",
        repair: "mend it",
    };

    fn read(file: &Path) -> Result<String, SecretFileError> {
        super::read(&KIND, file, |text| Ok(text.to_owned()))
    }

    #[test]
    fn a_file_that_every_user_can_access_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("file");
        assert!(ensure(&KIND, &file, || "first".to_owned()).expect("room"));
        assert!(!ensure(&KIND, &file, || "second".to_owned()).expect("it exists"));
        for (mode, is_accepted) in [(0o600, true), (0o440, true), (0o604, false), (0o602, false)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("own file");
            match read(&file) {
                Ok(text) => assert!(is_accepted && text == "first", "{mode:o}"),
                Err(error @ SecretFileError::AccessibleToOthers { .. }) => {
                    let text = error.to_string();
                    assert!(!is_accepted, "{text}");
                    assert!(text.ends_with(&format!("its mode is {mode:o}")), "{text}");
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    #[test]
    fn a_file_that_is_too_large_or_not_text_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("file");
        create(&file, 0o600, b"").expect("room");
        for contents in [vec![b'x'; 5_000], vec![0xff]] {
            fs::write(&file, contents).expect("room");
            assert!(matches!(
                read(&file),
                Err(SecretFileError::Malformed { .. })
            ));
        }
        let missing = read(&folder.path().join("missing"));
        assert!(matches!(missing, Err(SecretFileError::Unreadable { .. })));
    }

    #[test]
    fn a_file_that_exists_is_left_unchanged() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("new/file");
        create(&file, 0o640, b"first").expect("room");
        let mode = fs::metadata(&file).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let again = create(&file, 0o600, b"second").expect_err("it exists");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).expect("it exists"), b"first");
        let parent = file.parent().expect("a directory");
        assert_eq!(fs::read_dir(parent).expect("it exists").count(), 1);
    }
}
