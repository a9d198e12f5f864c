//! Files that tests compare with; `UPDATE=1` rewrites them, and you read the diff.
#![expect(
    clippy::disallowed_methods,
    reason = "the engine does no I/O, its tests read what they expect from files"
)]

use std::path::{Path, PathBuf};

/// The `.txt` files of a folder of `testdata`, by name.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("the folder is in the repository");
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    paths.sort();
    paths
}

/// A file of `testdata` by its relative path.
pub(crate) fn file(path: &str) -> PathBuf {
    root().join(path)
}

/// The text of a file; empty for one that is to be written by this run.
pub(crate) fn read(path: &Path) -> String {
    if !path.exists() {
        assert!(is_updating(), "{} is missing", path.display());
        return String::new();
    }
    std::fs::read_to_string(path).expect("the file is readable")
}

/// Compares a whole file with what was found, or rewrites it.
pub(crate) fn compare(path: &Path, found: &str) -> Result<(), String> {
    let expected = read(path);
    if expected == found {
        return Ok(());
    }
    if is_updating() {
        std::fs::write(path, found).expect("the file is writable");
        return Ok(());
    }
    Err(format!(
        "{} differs; UPDATE=1 rewrites it\n{}",
        path.display(),
        difference(&expected, found)
    ))
}

fn root() -> PathBuf {
    PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package's folder"))
        .join("testdata")
}

fn is_updating() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// The first lines that differ, with a few around them.
fn difference(expected: &str, found: &str) -> String {
    let pairs = expected.lines().zip(found.lines());
    let same = pairs.take_while(|(left, right)| left == right).count();
    let excerpt = |text: &str, sign: &str| {
        let lines = text.lines().skip(same.saturating_sub(3)).take(12);
        lines.fold(String::new(), |all, line| format!("{all}{sign} {line}\n"))
    };
    format!(
        "from line {}:\n{}{}",
        same + 1,
        excerpt(expected, "-"),
        excerpt(found, "+")
    )
}
