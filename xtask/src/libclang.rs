//! Finds libclang and the compiler headers that belong to it.
//!
//! The search mirrors the one of the bindings generator: `LIBCLANG_PATH`, then what `llvm-config`
//! says, then the usual library folders. Both parts are needed: some distributions package the
//! library without the headers, and the build then fails late and obscurely.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders below which distributions keep libraries.
const ROOTS: &[&str] = &[
    "/usr/lib",
    "/usr/lib64",
    "/usr/local",
    "/usr/local/lib",
    "/usr/local/opt",
    "/opt/homebrew/opt",
    "/Library/Developer/CommandLineTools/usr",
];

/// The folders of this machine that may hold libclang, most specific first.
pub(crate) fn directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    if let Some(path) = env::var_os("LIBCLANG_PATH").map(PathBuf::from) {
        directories.extend(path.parent().map(Path::to_owned));
        directories.push(path);
    }
    directories.extend(llvm_config_directory());
    for root in ROOTS {
        directories.extend(library_directories(Path::new(root)));
    }
    directories
}

/// Whether one of the folders holds the library, under any of its usual names.
pub(crate) fn has_library(directories: &[PathBuf]) -> bool {
    directories
        .iter()
        .flat_map(|directory| entries(directory))
        .filter_map(|path| path.file_name()?.to_str().map(is_library_name))
        .any(|is_library| is_library)
}

/// Whether one of the folders holds the compiler's own headers: `clang/VERSION/include/stddef.h`.
pub(crate) fn has_headers(directories: &[PathBuf]) -> bool {
    directories
        .iter()
        .flat_map(|directory| entries(&directory.join("clang")))
        .any(|version| version.join("include").join("stddef.h").is_file())
}

/// `libclang.so`, `libclang-14.so`, `libclang.so.1`, `libclang-14.so.14.0.6`, `libclang.dylib`; not
/// `libclang-cpp.so` or the static parts.
fn is_library_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("libclang") else {
        return false;
    };
    let rest = match rest.strip_prefix('-') {
        Some(versioned) => versioned.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'),
        None => rest.trim_start_matches('.'),
    };
    rest == "dylib" || rest == "so" || rest.starts_with("so.")
}

fn llvm_config_directory() -> Option<PathBuf> {
    let program = env::var_os("LLVM_CONFIG_PATH").unwrap_or_else(|| "llvm-config".into());
    let output = Command::new(program).arg("--libdir").output().ok()?;
    let directory = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| directory.trim().into())
}

/// The root itself, its folders, and the `lib…` folders in them (`/usr/lib/llvm-14/lib`).
fn library_directories(root: &Path) -> Vec<PathBuf> {
    let mut directories = vec![root.to_owned()];
    for folder in entries(root).into_iter().filter(|path| path.is_dir()) {
        let nested = entries(&folder).into_iter().filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("lib")) && path.is_dir()
        });
        directories.extend(nested);
        directories.push(folder);
    }
    directories
}

/// The entries of a folder; empty if it cannot be read, since it is only one place to look.
fn entries(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine_with(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        root
    }

    #[test]
    fn the_library_has_many_names() {
        for name in [
            "libclang.so",
            "libclang.so.1",
            "libclang-14.so",
            "libclang-14.so.14.0.6",
            "libclang.so.20.1",
            "libclang.dylib",
        ] {
            assert!(is_library_name(name), "{name}");
        }
        for name in [
            "libclang-cpp.so",
            "libclangTidy.a",
            "libclang.a",
            "libclang_rt.so",
            "libclc.so",
        ] {
            assert!(!is_library_name(name), "{name}");
        }
    }

    #[test]
    fn a_debian_machine_has_both_parts() {
        let root = machine_with(&[
            "llvm-14/lib/libclang.so.1",
            "llvm-14/lib/clang/14.0.6/include/stddef.h",
        ]);
        let directories = library_directories(root.path());
        assert!(has_library(&directories));
        assert!(has_headers(&directories));
    }

    #[test]
    fn the_library_alone_is_not_enough() {
        let root = machine_with(&["x86_64-linux-gnu/libclang-14.so.14"]);
        let directories = library_directories(root.path());
        assert!(has_library(&directories));
        assert!(!has_headers(&directories));
    }

    #[test]
    fn an_empty_machine_has_neither() {
        let root = machine_with(&[]);
        let directories = library_directories(root.path());
        assert!(!has_library(&directories));
        assert!(!has_headers(&directories));
    }
}
