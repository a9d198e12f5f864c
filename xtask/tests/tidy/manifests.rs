//! Which crate may depend on which (ADR 0001 and 0006): the diagram of the architecture as a test.

use toml::{Table, Value};

use crate::tree::{Finding, Source, expect_lines, expect_no_findings, expect_none, sources};

/// The allowed dependencies between our crates.
///
/// A crate's tests get no further ones. Only the package of black-box tests may use all crates.
const ARROWS: [(&str, &[&str]); 19] = [
    ("flotilla-api", &[]),
    (
        "flotilla-benches",
        &["flotilla-dsl", "flotilla-engine", "flotilla-replica"],
    ),
    (
        "flotilla-cli",
        &[
            "flotilla-api",
            "flotilla-client",
            "flotilla-dsl",
            "flotilla-server",
            "flotilla-trace",
            "flotilla-wasm",
        ],
    ),
    ("flotilla-client", &["flotilla-api", "flotilla-worker"]),
    ("flotilla-dsl", &["flotilla-engine"]),
    ("flotilla-engine", &[]),
    (
        "flotilla-fuzz",
        &[
            "flotilla-api",
            "flotilla-dsl",
            "flotilla-engine",
            "flotilla-oidc",
            "flotilla-wasm",
        ],
    ),
    (
        "flotilla-jepsen",
        &["flotilla-api", "flotilla-client", "flotilla-tests"],
    ),
    (
        "flotilla-leader",
        &["flotilla-dsl", "flotilla-engine", "flotilla-replica"],
    ),
    ("flotilla-libfuzzer", &["flotilla-fuzz"]),
    ("flotilla-oidc", &[]),
    ("flotilla-peers", &["flotilla-client"]),
    ("flotilla-replica", &["flotilla-engine"]),
    (
        "flotilla-server",
        &[
            "flotilla-api",
            "flotilla-dsl",
            "flotilla-engine",
            "flotilla-leader",
            "flotilla-oidc",
            "flotilla-replica",
            "flotilla-trace",
            "flotilla-wasm",
            "flotilla-worker",
        ],
    ),
    (
        "flotilla-sim",
        &[
            "flotilla-dsl",
            "flotilla-engine",
            "flotilla-leader",
            "flotilla-replica",
            "flotilla-worker",
        ],
    ),
    ("flotilla-trace", &[]),
    ("flotilla-wasm", &[]),
    ("flotilla-worker", &[]),
    ("xtask", &[]),
];

/// Libraries that only these packages may use, so that replacing a library changes one crate.
const RESERVED: [(&str, &[&str]); 8] = [
    ("anyhow", &["flotilla-cli", "xtask"]),
    ("opentelemetry", &["flotilla-trace"]),
    ("opentelemetry-otlp", &["flotilla-trace"]),
    ("opentelemetry_sdk", &["flotilla-trace"]),
    ("openraft", &["flotilla-replica"]),
    ("rocksdb", &["flotilla-replica"]),
    ("serde_yaml", &["flotilla-cli", "flotilla-dsl"]),
    ("wasmtime", &["flotilla-wasm"]),
];

/// The package of black-box tests.
const TESTS: &str = "flotilla-tests";

#[test]
fn crates_depend_on_each_other_only_along_the_drawn_arrows() {
    expect_none(&package_manifests(), illegal_arrows);
}

#[test]
fn reserved_libraries_stay_in_their_crate() {
    expect_none(&package_manifests(), reserved_libraries);
}

#[test]
fn every_crate_in_the_table_of_arrows_exists() {
    let manifests = package_manifests();
    let names: Vec<String> = manifests
        .iter()
        .map(|source| name(&parse(source)))
        .collect();
    let stale = ARROWS
        .iter()
        .filter(|(known, _)| !names.iter().any(|name| name == known));
    let table = Source::planted(file!(), include_str!("manifests.rs"));
    expect_no_findings(
        stale
            .map(|(known, _)| {
                table.finding(
                    1,
                    format!("expected a crate `{known}`, but it does not exist"),
                )
            })
            .collect(),
    );
}

/// A broken invariant of the engine must panic in every build, and be contained (design rule 1).
#[test]
fn the_engine_checks_for_overflow_in_releases() {
    let manifest = sources(&["Cargo.toml"]);
    let manifest = manifest.iter().find(|source| source.path == "Cargo.toml");
    let manifest = parse(manifest.expect("the workspace has a manifest"));
    let path = [
        "profile",
        "release",
        "package",
        "flotilla-engine",
        "overflow-checks",
    ];
    let (key, tables) = path.split_last().expect("a path");
    let table = tables.iter().fold(&manifest, |table, name| {
        let inner = table.get(*name).and_then(Value::as_table);
        inner.unwrap_or_else(|| panic!("expected `{name}` in Cargo.toml"))
    });
    assert_eq!(table.get(*key), Some(&Value::Boolean(true)));
}

fn illegal_arrows(source: &Source) -> Vec<Finding> {
    let manifest = parse(source);
    let name = name(&manifest);
    if name == TESTS {
        return Vec::new();
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        let message = format!("expected a crate of the table of arrows, but got `{name}`");
        return vec![source.finding(source.line_of_key("name"), message)];
    };
    dependencies(&manifest)
        .into_iter()
        .filter(|dependency| dependency.package.starts_with("flotilla-"))
        .filter(|dependency| !allowed.contains(&dependency.package.as_str()))
        .map(|dependency| {
            let message = format!("`{name}` must not depend on `{}`", dependency.package);
            source.finding(source.line_of_key(&dependency.key), message)
        })
        .collect()
}

fn reserved_libraries(source: &Source) -> Vec<Finding> {
    let manifest = parse(source);
    let name = name(&manifest);
    let mut findings = Vec::new();
    for dependency in dependencies(&manifest) {
        let reserved = RESERVED
            .iter()
            .find(|(library, _)| *library == dependency.package);
        let Some((library, users)) = reserved.filter(|(_, users)| !users.contains(&name.as_str()))
        else {
            continue;
        };
        let message = format!("only {} may use `{library}`", users.join(" and "));
        findings.push(source.finding(source.line_of_key(&dependency.key), message));
    }
    findings
}

/// An entry of a dependency table of a manifest.
pub(crate) struct Dependency {
    /// Its key in the table.
    pub(crate) key: String,
    /// The package of that key.
    pub(crate) package: String,
}

/// Every dependency: for the build, for tests, for one platform.
pub(crate) fn dependencies(manifest: &Table) -> Vec<Dependency> {
    let platforms = manifest.get("target").and_then(Value::as_table);
    let platforms = platforms.into_iter().flat_map(Table::values);
    std::iter::once(manifest)
        .chain(platforms.filter_map(Value::as_table))
        .flat_map(|table| {
            ["dependencies", "dev-dependencies", "build-dependencies"]
                .into_iter()
                .filter_map(|section| table.get(section)?.as_table())
        })
        .flatten()
        .map(|(key, value)| Dependency {
            key: key.clone(),
            package: renamed(value).unwrap_or(key).to_owned(),
        })
        .collect()
}

fn renamed(dependency: &Value) -> Option<&str> {
    dependency.get("package")?.as_str()
}

pub(crate) fn package_manifests() -> Vec<Source> {
    let manifests = sources(&["Cargo.toml"]).into_iter();
    manifests
        .filter(|source| source.path != "Cargo.toml")
        .collect()
}

pub(crate) fn parse(source: &Source) -> Table {
    let parsed = source.text.parse();
    parsed.unwrap_or_else(|error| panic!("{}: {error}", source.path))
}

fn name(manifest: &Table) -> String {
    let name = manifest
        .get("package")
        .and_then(|package| package.get("name"));
    let name = name.and_then(Value::as_str);
    name.expect("cargo has checked that a package has a name")
        .to_owned()
}

fn planted(name: &str, dependencies: &str) -> Source {
    let text = format!("[package]\nname = \"{name}\"\n{dependencies}");
    Source::planted("crates/a/Cargo.toml", &text)
}

#[test]
fn planted_arrows_are_found_in_every_table() {
    for table in [
        "dependencies",
        "dev-dependencies",
        "build-dependencies",
        "target.'cfg(unix)'.dependencies",
    ] {
        let text = format!("[{table}]\nserde = \"1\"\nflotilla-server.workspace = true\n");
        expect_lines(illegal_arrows, &planted("flotilla-engine", &text), &[5]);
    }
    let renamed =
        "[dependencies]\nnode = { package = \"flotilla-server\", path = \"../server\" }\n";
    expect_lines(illegal_arrows, &planted("flotilla-engine", renamed), &[4]);
}

#[test]
fn a_planted_unknown_crate_is_found() {
    expect_lines(illegal_arrows, &planted("flotilla-common", ""), &[2]);
}

#[test]
fn the_black_box_tests_may_see_everything() {
    let text = "[dependencies]\nflotilla-server.workspace = true\n";
    expect_lines(illegal_arrows, &planted(TESTS, text), &[]);
}

#[test]
fn planted_reserved_libraries_are_found() {
    for (library, users) in RESERVED {
        let text = format!("[dependencies]\n{library}.workspace = true\n");
        expect_lines(reserved_libraries, &planted("flotilla-api", &text), &[4]);
        for user in users {
            expect_lines(reserved_libraries, &planted(user, &text), &[]);
        }
    }
}
