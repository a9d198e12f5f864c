//! The inputs that are generated from other files of the project. `UPDATE=1` generates them again, for example
//! after a command or a table was added; the other files of a corpus are written by hand.

use flotilla_engine::Entry;
use flotilla_fuzz::corpus;
use flotilla_wasm::to_binary;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The prefix of the names of generated files, and of no others.
const ORIGINS: [&str; 4] = ["example-", "fixture-", "golden-", "manual-"];
/// The maximum size of all corpora together, in bytes: every clone contains them.
const CORPORA_BYTES_MAX: usize = 300 << 10;

/// Files by path.
type Inputs = BTreeMap<PathBuf, Vec<u8>>;

#[test]
fn inputs_made_from_other_files_are_up_to_date() {
    let made = made();
    if std::env::var_os("UPDATE").is_some() {
        update(&made);
    }
    let found = found();
    for (path, input) in &made {
        let is_same = found.get(path) == Some(input);
        assert!(is_same, "{} differs; UPDATE=1 rewrites it", path.display());
    }
    for path in found.keys().filter(|path| is_made(path)) {
        let is_known = made.contains_key(path);
        assert!(
            is_known,
            "{} is generated from nothing; UPDATE=1 removes it",
            path.display()
        );
    }
}

#[test]
fn the_corpora_are_small() {
    let bytes: usize = found().values().map(Vec::len).sum();
    assert!(bytes <= CORPORA_BYTES_MAX, "they have {bytes} bytes");
}

fn update(made: &Inputs) {
    for path in found()
        .keys()
        .filter(|path| is_made(path) && !made.contains_key(*path))
    {
        fs::remove_file(path).expect("the file was just found");
    }
    for (path, input) in made {
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("a writable tree");
        fs::write(path, input).expect("a writable tree");
    }
}

fn is_made(path: &Path) -> bool {
    let name = name(path);
    ORIGINS.iter().any(|origin| name.starts_with(origin))
}

/// The existing files of the corpora.
fn found() -> Inputs {
    let names = flotilla_fuzz::TARGETS.iter().map(|target| target.name);
    let paths = names.flat_map(|name| corpus::paths(name).unwrap_or_default());
    paths
        .map(|path| {
            (
                path.clone(),
                fs::read(path).expect("the file was just found"),
            )
        })
        .collect()
}

/// The expected files.
fn made() -> Inputs {
    let mut inputs = Inputs::new();
    let mut put = |target: &str, name: String, input: Vec<u8>| {
        inputs.insert(corpus::folder(target).join(name), input);
    };
    for (origin, folder) in [
        ("example", "examples/workflows"),
        ("example", "examples/actions"),
        ("fixture", "tests/fixtures"),
    ] {
        for path in files(folder) {
            let input = fs::read(&path).expect("the file was just found");
            let name = format!("{origin}-{}", stem(&path));
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("yaml") => put("definition", name, input),
                Some("wat") => {
                    let binary = to_binary(&input).expect("it is sound").into_owned();
                    put("module", format!("{name}-binary"), binary);
                    put("module", name, input);
                }
                _ => {}
            }
        }
    }
    for (name, definition) in manual_definitions() {
        put("definition", name, definition.into_bytes());
    }
    for (name, [entry]) in golden("entries") {
        let commands = Entry::decode(&entry).expect("golden bytes").commands;
        put(
            "entry",
            format!("golden-command-{name}"),
            commands[0].encode(),
        );
        put("entry", format!("golden-entry-{name}"), entry);
    }
    for (name, [key, record]) in golden("records") {
        let length = u16::try_from(key.len()).expect("keys are short");
        let row = [&length.to_be_bytes()[..], &key, &record].concat();
        put("record", format!("golden-{name}"), row);
    }
    inputs
}

/// The blocks of the manual that are definitions, as the manual's test selects them.
fn manual_definitions() -> Vec<(String, String)> {
    let mut definitions = Vec::new();
    for page in [files("docs/manual"), files("docs/manual/workflows")].concat() {
        if page.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(&page).expect("the file was just found");
        let blocks = text.split("```yaml\n").skip(1);
        let blocks = blocks.filter_map(|block| block.split("```").next());
        for (position, block) in blocks.enumerate() {
            definitions.push((
                format!("manual-{}-{position}", stem(&page)),
                block.to_owned(),
            ));
        }
    }
    definitions
}

/// The lines of a file of golden bytes: a name and `COLUMNS` columns of bytes.
fn golden<const COLUMNS: usize>(file: &str) -> Vec<(String, [Vec<u8>; COLUMNS])> {
    let path = root().join(format!("crates/engine/testdata/golden/{file}.txt"));
    let text = fs::read_to_string(path).expect("golden bytes");
    let row = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().expect("a line has a name").to_owned();
        let columns: Vec<Vec<u8>> = words.map(bytes).collect();
        (name, columns.try_into().expect("a line has its columns"))
    };
    text.lines().map(row).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = (0..hex.len()).step_by(2).map(|at| &hex[at..at + 2]);
    digits
        .map(|digits| u8::from_str_radix(digits, 16).expect("hexadecimal digits"))
        .collect()
}

/// The files of a folder of the project, without those in its subfolders.
fn files(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder of the project");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| path.is_file()).collect()
}

fn root() -> &'static Path {
    corpus::root()
        .parent()
        .expect("the package is a folder of the project")
}

fn stem(path: &Path) -> &str {
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    stem.expect("names in the project are UTF-8")
}

fn name(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str());
    name.expect("names in the project are UTF-8")
}
