//! An unused dependency costs every build and every audit.

use toml::Value;

use crate::manifests::{dependencies, package_manifests, parse};
use crate::tree::{Finding, Source, expect_no_findings, sources};

/// Dependencies of generated code, which the tree does not name.
const USED_BY_GENERATED_CODE: [&str; 3] = ["prost", "tonic", "tonic-prost"];

#[test]
fn every_dependency_of_a_crate_is_used() {
    let code = sources(&[".rs"]);
    let manifests = package_manifests();
    expect_no_findings(
        manifests
            .iter()
            .flat_map(|manifest| unused(manifest, &code))
            .collect(),
    );
}

#[test]
fn every_dependency_of_the_workspace_is_used_by_a_crate() {
    let workspace = sources(&["Cargo.toml"])
        .into_iter()
        .find(|manifest| manifest.path == "Cargo.toml")
        .expect("the root has a manifest");
    expect_no_findings(unclaimed(&workspace, &package_manifests()));
}

fn unused(manifest: &Source, code: &[Source]) -> Vec<Finding> {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let own: Vec<&Source> = code
        .iter()
        .filter(|source| source.path.starts_with(folder))
        .collect();
    dependencies(&parse(manifest))
        .into_iter()
        .filter(|dependency| !USED_BY_GENERATED_CODE.contains(&dependency.key.as_str()))
        .filter(|dependency| {
            !own.iter()
                .any(|source| names(&source.text, &dependency.key))
        })
        .map(|dependency| {
            let line = manifest.line_of_key(&dependency.key);
            manifest.finding(
                line,
                format!("nothing below {folder} uses `{}`", dependency.key),
            )
        })
        .collect()
}

fn unclaimed(workspace: &Source, manifests: &[Source]) -> Vec<Finding> {
    let claimed: Vec<String> = manifests
        .iter()
        .flat_map(|manifest| dependencies(&parse(manifest)))
        .map(|dependency| dependency.key)
        .collect();
    let table = parse(workspace);
    let offered = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(Value::as_table)
        .expect("the workspace lists its dependencies");
    offered
        .keys()
        .filter(|key| !claimed.contains(key))
        .map(|key| workspace.finding(workspace.line_of_key(key), format!("no crate uses `{key}`")))
        .collect()
}

/// Whether the code names the crate: as the start of a path, or whole in a `use`.
fn names(code: &str, key: &str) -> bool {
    let name = key.replace('-', "_");
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    code.match_indices(&name).any(|(start, _)| {
        let starts = !code[..start].ends_with(is_part);
        let rest = &code[start + name.len()..];
        let is_whole_use = code[..start].ends_with("use ") && rest.starts_with([';', ' ']);
        starts && (rest.starts_with("::") || is_whole_use)
    })
}

#[test]
fn a_planted_unused_dependency_is_found() {
    let text = "[package]\nname = \"a\"\n[dependencies]\nbytes = \"1\"\nserde-x = \"1\"\n";
    let manifest = Source::planted("crates/a/Cargo.toml", text);
    let code = [
        Source::planted(
            "crates/a/src/lib.rs",
            "use serde_x::Y;\nlet bytes = my_bytes::new();\n",
        ),
        Source::planted("crates/b/src/lib.rs", "use bytes::Bytes;\n"),
    ];
    let found = unused(&manifest, &code);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].line, 4, "{found:?}");
}

#[test]
fn a_planted_unclaimed_dependency_is_found() {
    let workspace = Source::planted(
        "Cargo.toml",
        "[workspace.dependencies]\nbytes = \"1\"\nserde = \"1\"\n",
    );
    let member = "[package]\nname = \"a\"\n[build-dependencies]\nserde.workspace = true\n";
    let found = unclaimed(
        &workspace,
        &[Source::planted("crates/a/Cargo.toml", member)],
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].line, 2, "{found:?}");
}
