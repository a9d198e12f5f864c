//! The locations of the project and of its build output.

mod root;
mod shared_target;

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result};

pub(crate) use root::root;

/// The folder for build output, ready for a build of this clone.
///
/// # Errors
/// As [`target_dir`], and if the folder or the clone cannot be written.
pub(crate) fn claim_target_dir() -> Result<PathBuf> {
    let target_dir = target_dir()?;
    shared_target::claim(&target_dir, root())?;
    Ok(target_dir)
}

/// The folder for build output: the caller's `CARGO_TARGET_DIR`, or one in the user's cache that
/// all clones share, because a cold build takes about a quarter of an hour (ADR 0004).
///
/// # Errors
/// If neither a variable nor the user's home folder gives the location.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let target_dir = choose_target_dir(|name| env::var_os(name), env::home_dir())
        .context("expected CARGO_TARGET_DIR or a home folder, but there is neither")?;
    // The children run in the root folder, the caller possibly elsewhere.
    std::path::absolute(target_dir).context("expected a current folder, but it is gone")
}

fn choose_target_dir(
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Option<PathBuf> {
    let path = |name| {
        variable(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(chosen) = path("CARGO_TARGET_DIR") {
        return Some(chosen);
    }
    // The XDG specification says to ignore a relative path.
    let cache = path("XDG_CACHE_HOME").filter(|cache| cache.is_absolute());
    let cache = cache.or_else(|| home.map(|home| home.join(".cache")))?;
    Some(cache.join("flotilla").join("target"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(variables: &[(&str, &str)], home: Option<&str>, expected: Option<&str>) {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let chosen = choose_target_dir(variable, home.map(PathBuf::from));
        assert_eq!(chosen, expected.map(PathBuf::from));
    }

    #[test]
    fn the_callers_target_folder_wins() {
        let variables = [("CARGO_TARGET_DIR", "out"), ("XDG_CACHE_HOME", "/cache")];
        check(&variables, Some("/home/u"), Some("out"));
    }

    #[test]
    fn without_it_the_cache_folder_is_shared() {
        let variables = [("CARGO_TARGET_DIR", ""), ("XDG_CACHE_HOME", "/cache")];
        check(&variables, Some("/home/u"), Some("/cache/flotilla/target"));
        check(&[], Some("/home/u"), Some("/home/u/.cache/flotilla/target"));
    }

    #[test]
    fn a_relative_cache_folder_is_ignored() {
        let variables = [("XDG_CACHE_HOME", "cache")];
        check(
            &variables,
            Some("/home/u"),
            Some("/home/u/.cache/flotilla/target"),
        );
    }

    #[test]
    fn without_any_place_there_is_none() {
        check(&[], None, None);
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("Cargo.lock").is_file());
    }
}
