//! Files with secrets: written completely or not at all, and read only if other users cannot access them.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use tempfile::NamedTempFile;

/// The maximum size of a file, in bytes.
const FILE_BYTES_MAX: u64 = 4_096;
/// The permission bits of users who neither own the file nor are in its group.
const OTHERS: u32 = 0o007;

/// Why a file is not read.
#[derive(Debug)]
pub(crate) enum SecretFileError {
    /// It cannot be read.
    Unreadable(io::Error),
    /// Every user of the machine can use it; its permission bits.
    AccessibleToOthers(u32),
    /// It is not a file of text of at most [`FILE_BYTES_MAX`].
    Malformed,
}

/// Reads a file, unless other users than its owner and the members of its group can access it.
///
/// # Errors
/// [`SecretFileError`].
pub(crate) fn read(file: &Path) -> Result<String, SecretFileError> {
    let opened = File::open(file).map_err(SecretFileError::Unreadable)?;
    let metadata = opened.metadata().map_err(SecretFileError::Unreadable)?;
    if metadata.mode() & OTHERS != 0 {
        return Err(SecretFileError::AccessibleToOthers(metadata.mode() & 0o777));
    }
    if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
        return Err(SecretFileError::Malformed);
    }
    let mut text = String::new();
    let mut limited = opened.take(FILE_BYTES_MAX);
    match limited.read_to_string(&mut text) {
        Ok(_) => Ok(text),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(SecretFileError::Malformed),
        Err(error) => Err(SecretFileError::Unreadable(error)),
    }
}

/// Writes the text to the file, unless the file exists. Only its owner can read it. Returns whether it was written.
///
/// # Errors
/// An I/O error.
pub(crate) fn ensure(file: &Path, text: impl FnOnce() -> String) -> io::Result<bool> {
    // Most starts find it; and its directory may be read-only then.
    if file.exists() {
        return Ok(false);
    }
    match create(file, 0o600, text().as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
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

    #[test]
    fn a_file_that_every_user_can_access_is_refused() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("file");
        assert!(ensure(&file, || "first".to_owned()).expect("room"));
        assert!(!ensure(&file, || "second".to_owned()).expect("it exists"));
        for (mode, is_accepted) in [(0o600, true), (0o440, true), (0o604, false), (0o602, false)] {
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("own file");
            match read(&file) {
                Ok(text) => assert!(is_accepted && text == "first", "{mode:o}"),
                Err(SecretFileError::AccessibleToOthers(found)) => assert_eq!(found, mode),
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
            assert!(matches!(read(&file), Err(SecretFileError::Malformed)));
        }
        let missing = read(&folder.path().join("missing"));
        assert!(matches!(missing, Err(SecretFileError::Unreadable(_))));
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
