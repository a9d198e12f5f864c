//! Files of the tools that are installed in the target folder.

use std::fs;
use std::path::Path;

/// Whether two files have the same content.
pub(crate) fn is_copy(copy: &Path, original: &Path) -> bool {
    match (fs::read(copy), fs::read(original)) {
        (Ok(copy), Ok(original)) => copy == original,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_not_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        assert!(!is_copy(&one, &two));
        fs::write(&one, "grpcio==1").unwrap();
        assert!(!is_copy(&one, &two));
        fs::copy(&one, &two).unwrap();
        assert!(is_copy(&one, &two));
        fs::write(&one, "grpcio==2").unwrap();
        assert!(!is_copy(&one, &two));
    }
}
