//! Files of the project that tests use.

use std::path::PathBuf;

/// A file of `tests/fixtures`, as an argument for a command.
pub(crate) fn fixture(name: &str) -> String {
    argument(root().join("tests/fixtures").join(name))
}

/// A file of `examples`, as an argument for a command.
pub(crate) fn example(name: &str) -> String {
    argument(root().join("examples").join(name))
}

/// The names of all workflows of `examples`, in order.
pub(crate) fn example_workflows() -> Vec<String> {
    let folder = root().join("examples/workflows");
    let mut names: Vec<String> = folder
        .read_dir()
        .expect("the examples have a folder")
        .map(|entry| entry.expect("an entry of a folder").file_name())
        .map(|name| name.into_string().expect("names in the project are UTF-8"))
        .collect();
    names.sort();
    names
}

/// A folder of the project.
pub(crate) fn folder(name: &str) -> PathBuf {
    root().join(name)
}

fn root() -> PathBuf {
    let tests = PathBuf::from(
        std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package's folder"),
    );
    tests
        .parent()
        .expect("tests is a folder of the project")
        .to_owned()
}

fn argument(path: PathBuf) -> String {
    let path = path.into_os_string().into_string();
    path.expect("names in the project are UTF-8")
}
