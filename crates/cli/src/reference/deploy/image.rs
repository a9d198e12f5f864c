//! Checks of the Dockerfile: it builds what it starts, and the files that it reads exist.

use super::Findings;
use super::files::{Files, root};
use crate::reference::launch::Launch;
use flotilla_server::ServerConfig;
use std::collections::BTreeMap;
use std::fs;

pub(super) const FILE: &str = "deploy/docker/Dockerfile";
pub(super) const IGNORED: &str = ".dockerignore";

/// The image name that manifests use.
pub(super) const NAME: &str = "flotilla";
/// Instructions that the Dockerfile may have.
const INSTRUCTIONS: [&str; 12] = [
    "FROM",
    "RUN",
    "WORKDIR",
    "COPY",
    "LABEL",
    "USER",
    "ENV",
    "VOLUME",
    "EXPOSE",
    "STOPSIGNAL",
    "ENTRYPOINT",
    "CMD",
];

/// The properties that the image declares.
#[derive(Debug, Default)]
pub(super) struct Image {
    /// The numeric user id.
    pub(super) user: String,
    pub(super) variables: BTreeMap<String, String>,
    /// The default arguments of `flo`.
    pub(super) command: Vec<String>,
}

/// The version of all packages, which is also the image's tag.
pub(super) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Whether a container uses this version of the image, from any registry.
pub(super) fn is_ours(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    name == format!("{NAME}:{}", version())
}

/// Checks the Dockerfile and `.dockerignore`.
pub(super) fn check(files: &Files, findings: &mut Findings) -> Image {
    let instructions = instructions(files.text(FILE));
    for (name, _) in &instructions {
        let is_known = INSTRUCTIONS.contains(&name.as_str());
        findings.expect(
            FILE,
            is_known,
            format!("a known instruction, but found {name}"),
        );
    }
    check_build(files, &instructions, findings);
    check_runtime(&instructions, findings)
}

/// The instructions with their arguments, with continued lines joined.
fn instructions(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let joined = lines.fold(String::new(), |text, line| match line.strip_suffix('\\') {
        Some(line) => text + line,
        None => text + line + "\n",
    });
    let lines = joined.lines().filter_map(|line| line.split_once(' '));
    let trimmed = |rest: &str| rest.split_whitespace().collect::<Vec<_>>().join(" ");
    lines
        .map(|(name, rest)| (name.to_owned(), trimmed(rest)))
        .collect()
}

fn of<'a>(instructions: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    let found = instructions.iter().filter(|(found, _)| found == name);
    found.map(|(_, rest)| rest.as_str()).collect()
}

/// The build stage: uses the project's Rust version, existing files, and a package of the project.
fn check_build(files: &Files, instructions: &[(String, String)], findings: &mut Findings) {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    let stages = of(instructions, "FROM");
    let is_pinned = stages[0].starts_with(&format!("rust:{rust}-"));
    findings.expect(FILE, is_pinned, format!("a builder with rust {rust}"));
    let runs = of(instructions, "RUN").join("\n");
    let package = format!(
        "cargo build --release --locked --package {}",
        env!("CARGO_PKG_NAME")
    );
    findings.expect(
        FILE,
        runs.contains(&package),
        format!("`{package}`, but it says {runs}"),
    );
    findings.expect(
        FILE,
        runs.contains("target/release/flo "),
        "the binary `flo` to be taken",
    );
    let ignored: Vec<&str> = files
        .text(IGNORED)
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    for copied in of(instructions, "COPY") {
        let words: Vec<&str> = copied
            .split(' ')
            .filter(|word| !word.starts_with("--"))
            .collect();
        let [source, _] = words[..] else {
            findings.push(
                FILE,
                format!("expected COPY FROM TO, but it says {copied:?}"),
            );
            continue;
        };
        if copied.contains("--from=") {
            let is_made = runs.split_whitespace().any(|word| word == source);
            findings.expect(FILE, is_made, format!("{source} to be made by the builder"));
        } else {
            let is_there = root().join(source).exists();
            findings.expect(FILE, is_there, format!("`{source}` to be in the project"));
            let is_ignored = ignored.contains(&source);
            findings.expect(FILE, !is_ignored, format!("`{source}` not to be ignored"));
        }
    }
    for needed in needed() {
        let is_kept = !ignored.contains(&needed.as_str());
        findings.expect(
            IGNORED,
            is_kept,
            format!("`{needed}` to be there: the build reads it"),
        );
    }
}

/// The inputs of a build: all packages of the workspace, because cargo needs every manifest.
fn needed() -> Vec<String> {
    let folders = fs::read_dir(root()).expect("the root can be read");
    let folders = folders.map(|entry| entry.expect("an entry of it").path());
    let packages = folders.filter(|path| path.join("Cargo.toml").exists());
    let names = packages.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    let others = ["crates", "proto", "Cargo.toml", "Cargo.lock"].map(str::to_owned);
    names.chain(others).collect()
}

/// The runtime stage: an unprivileged user, flo, its ports and its directory.
fn check_runtime(instructions: &[(String, String)], findings: &mut Findings) -> Image {
    let last = |name| of(instructions, name).last().copied().unwrap_or_default();
    let version = format!("org.opencontainers.image.version=\"{}\"", version());
    findings.expect(FILE, last("LABEL").contains(&version), version);
    let user = last("USER").split(':').next().unwrap_or_default();
    let is_number = user.parse::<u32>().is_ok_and(|number| number > 0);
    findings.expect(
        FILE,
        is_number,
        format!("a user by number, not root, but it is {user:?}"),
    );
    let installed = of(instructions, "COPY");
    let entrypoint = list(last("ENTRYPOINT"));
    let binary = entrypoint.first().cloned().unwrap_or_default();
    let path = format!(" /usr/local/bin/{binary}");
    let is_installed = installed.iter().any(|copied| copied.ends_with(&path));
    findings.expect(
        FILE,
        is_installed && entrypoint.len() == 1,
        format!("`{binary}` to be installed"),
    );
    let variables: BTreeMap<String, String> = of(instructions, "ENV")
        .iter()
        .filter_map(|variable| variable.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let image = Image {
        user: user.to_owned(),
        variables,
        command: list(last("CMD")),
    };
    let launch = Launch {
        arguments: image.command.clone(),
        variables: image.variables.clone(),
        ..Launch::default()
    };
    match launch.config() {
        Ok(config) => check_config(&config, instructions, findings),
        Err(error) => findings.push(FILE, error),
    }
    image
}

/// Ports and volume are those of a node with the default configuration.
fn check_config(config: &ServerConfig, instructions: &[(String, String)], findings: &mut Findings) {
    let last = |name| of(instructions, name).last().copied().unwrap_or_default();
    let ports = [config.listen, config.peer_listen, config.http_listen];
    let ports = ports.map(|address| address.port().to_string()).join(" ");
    let exposed = last("EXPOSE");
    findings.expect(
        FILE,
        exposed == ports,
        format!("EXPOSE {ports}, but it says {exposed}"),
    );
    let data = config.data_dir.display().to_string();
    let is_volume = list(last("VOLUME")) == [data.clone()];
    findings.expect(FILE, is_volume, format!("VOLUME to be {data}"));
    let owned = format!(" {data}");
    let is_owned = of(instructions, "COPY").iter().any(|copied| {
        copied.ends_with(&owned) && copied.contains(&format!("--chown={}", last("USER")))
    });
    findings.expect(FILE, is_owned, format!("{data} to be the user's"));
}

/// A list in JSON; empty if it is not a list.
fn list(text: &str) -> Vec<String> {
    serde_json::from_str(text).unwrap_or_default()
}
