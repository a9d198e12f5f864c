//! What the build needs beyond Rust: clang for RocksDB, libclang for its bindings, make for jemalloc, and a linker.

use std::env;
use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{install, libclang};

/// Something that the build needs and this machine lacks.
type Missing = &'static str;

/// Calls the HTTP API in the manual's examples.
const CURL: &str = "curl";

/// Checks what the build needs, and installs it if possible without asking.
///
/// # Errors
/// If something is missing and was not installed: the error names it and the command that installs it.
pub(crate) fn ensure() -> Result<()> {
    if missing().is_empty() {
        return Ok(());
    }
    if install::is_unattended_possible() {
        println!("Installing what the build needs: {}.", missing().join(", "));
        install::run(&install::DEBIAN_PACKAGES)?;
    }
    let missing = missing();
    if !missing.is_empty() {
        bail!("{}", complaint(&missing, install::line()));
    }
    Ok(())
}

/// As [`ensure`], for the build and for the tests, which run the manual's examples.
///
/// # Errors
/// As [`ensure`].
pub(crate) fn ensure_with_tests() -> Result<()> {
    ensure()?;
    if is_program(CURL) {
        return Ok(());
    }
    if install::is_unattended_possible() {
        println!("Installing what the tests need: {CURL}.");
        return install::run(&[CURL]);
    }
    bail!(
        "expected {CURL}, which the manual's examples use, but found none; install it, then try again"
    )
}

fn missing() -> Vec<Missing> {
    let mut missing = Vec::new();
    if !has_compiler() {
        missing.push("clang++, or a C++ compiler that CXX names");
    }
    if !is_program("make") {
        missing.push("make");
    }
    let directories = libclang::directories();
    if !libclang::has_library(&directories) {
        missing.push("libclang");
    } else if !libclang::has_headers(&directories) {
        missing.push("libclang's own headers (stddef.h)");
    }
    missing
}

/// Whether the build's compiler exists, `CXX` or else `clang++` as in `.cargo/config.toml`, and `cc`,
/// which links.
fn has_compiler() -> bool {
    let call = env::var("CXX").unwrap_or_else(|_| "clang++".to_owned());
    // It may contain arguments or a wrapper, and the compiler may be given by path.
    call.split_whitespace().next().is_some_and(is_program) && is_program("cc")
}

/// Whether a program with that name or path exists.
pub(crate) fn is_program(name: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    let mut candidates = env::split_paths(&folders).map(|folder: PathBuf| folder.join(name));
    candidates.any(|candidate| candidate.is_file())
}

fn complaint(missing: &[Missing], line: Option<&str>) -> String {
    let missing = missing.join(" and ");
    match line {
        Some(line) => {
            format!("expected {missing}, but found none; run this, then try again:\n\n    {line}\n")
        }
        None => format!("expected {missing}, but found none; install it, then try again"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name_and_by_path() {
        assert!(is_program("sh"));
        assert!(is_program("/bin/sh"));
        assert!(!is_program("no-such-program"));
    }

    #[test]
    fn the_complaint_holds_what_is_missing_and_the_line_to_run() {
        let text = complaint(&["libclang"], Some("sudo dnf install clang-devel"));
        assert!(text.contains("expected libclang"), "{text}");
        assert!(
            text.contains("\n    sudo dnf install clang-devel\n"),
            "{text}"
        );
    }
}
