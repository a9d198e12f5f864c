//! The systemd unit with its user, its configuration and its backups.

use super::Findings;
use super::access::{self, SecretFiles};
use super::files::Files;
use super::shape;
use super::tls;
use crate::reference::launch::Launch;
use crate::reference::words;
use flotilla_server::{STOP_TIME, ServerConfig};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

pub(super) const FILE: &str = "deploy/systemd/flotilla.service";
pub(super) const CONFIG: &str = "deploy/systemd/flotilla.toml";
pub(super) const USERS: &str = "deploy/systemd/sysusers.conf";
pub(super) const BACKUPS: &str = "deploy/systemd/flotilla-backup.cron";

/// The installed paths of the files.
const CONFIG_INSTALLED: &str = "/etc/flotilla/flotilla.toml";
const BOOTSTRAP_TOKEN: &str = "/etc/flotilla/bootstrap.token";
const KEYRING: &str = "/etc/flotilla/keyring";
const BINARY_INSTALLED: &str = "/usr/local/bin/flo";

/// Checks the unit and its related files.
pub(super) fn check(files: &Files, findings: &mut Findings) {
    let unit = read(files.text(FILE), findings);
    for mismatch in shape::mismatches("unit", &unit) {
        findings.push(FILE, mismatch);
    }
    let service = |key: &str| unit["Service"][key][0].as_str().unwrap_or_default();
    // A removed node ends with 0 and stays stopped; a wrong configuration is not fixed by a
    // restart, but other start failures may be.
    let stays_ended =
        service("Restart") == "on-failure" && service("RestartPreventExitStatus") == "2";
    findings.expect(
        FILE,
        stays_ended,
        "a node to be started again unless that is of no use",
    );
    let stop: u64 = service("TimeoutStopSec").parse().unwrap_or(0);
    findings.expect(
        FILE,
        stop >= STOP_TIME.as_secs(),
        "TimeoutStopSec to be long enough",
    );
    let user = service("User");
    let is_made = files.text(USERS).contains(&format!("\nu {user} - "));
    findings.expect(USERS, is_made, format!("the user {user:?}"));
    let start = format!("{BINARY_INSTALLED} server --config {CONFIG_INSTALLED}");
    let is_started = service("ExecStart") == start;
    findings.expect(FILE, is_started, format!("{start:?} to be started"));
    let state = service("StateDirectory");
    if let Some(config) = check_config(files.text(CONFIG), state, findings) {
        check_backups(files, user, &config, findings);
    }
}

/// Checks a configuration at its place beside the unit, and returns the node's configuration.
pub(super) fn check_config(
    text: &str,
    state: &str,
    findings: &mut Findings,
) -> Option<ServerConfig> {
    let arguments = ["server", "--config", CONFIG_INSTALLED];
    let launch = Launch {
        arguments: arguments.map(str::to_owned).to_vec(),
        files: [(CONFIG_INSTALLED.to_owned(), text.to_owned())].into(),
        ..Launch::default()
    };
    let config = match launch.config() {
        Ok(config) => config,
        Err(error) => {
            findings.push(CONFIG, error);
            return None;
        }
    };
    let data = format!("/var/lib/{state}");
    let is_state = config.data_dir.to_str() == Some(&data);
    findings.expect(
        CONFIG,
        is_state,
        format!("the data to be in the StateDirectory, {data}"),
    );
    let node = tls::Node {
        path: CONFIG,
        name: "the node",
        config: &config,
    };
    node.check("/etc/flotilla", findings);
    if config.join.is_none() {
        let files = SecretFiles {
            bootstrap_token: Some(Path::new(BOOTSTRAP_TOKEN)),
            keyring: Some(Path::new(KEYRING)),
        };
        access::check(node, files, findings);
        findings.expect_where_peers_look(CONFIG, &config);
    }
    Some(config)
}

/// Checks that the cron table runs the unit's flo as the unit's user, with the node's address and
/// certificate, and takes and verifies backups.
fn check_backups(files: &Files, user: &str, config: &ServerConfig, findings: &mut Findings) {
    let mut launch = Launch::default();
    let mut commands = Vec::new();
    let lines = files.text(BACKUPS).lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        match &words(line)[..] {
            [_, _, _, _, _, caller, binary, arguments @ ..] => {
                let is_unit = caller == user && binary == BINARY_INSTALLED;
                findings.expect(BACKUPS, is_unit, format!("{user} to call flo"));
                launch.arguments = arguments.to_vec();
                if let Err(error) = launch.check() {
                    findings.push(BACKUPS, error);
                }
                commands.extend(arguments.get(..2).map(<[String]>::to_vec));
            }
            [variable] => {
                let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
                launch.variables.insert(name.to_owned(), value.to_owned());
            }
            _ => findings.push(BACKUPS, format!("expected no line {line:?}")),
        }
    }
    let is_verified = commands == [["cluster", "backup"], ["cluster", "verify"]];
    findings.expect(
        BACKUPS,
        is_verified,
        "`flo cluster backup` and `flo cluster verify`",
    );
    let file = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let expected = [
        ("FLO_ENDPOINT", Some(config.listen.to_string())),
        ("FLO_TLS_CA", file(&config.tls_ca)),
        ("FLO_TLS_CERT", file(&config.tls_cert)),
        ("FLO_TLS_KEY", file(&config.tls_key)),
    ];
    for (name, value) in expected {
        let is_so = launch.variables.get(name) == value.as_ref();
        findings.expect(BACKUPS, is_so, format!("{name} to be {value:?}"));
    }
}

/// Sections, keys, and all values of each key.
fn read(text: &str, findings: &mut Findings) -> Value {
    let mut unit = Map::new();
    let mut section = String::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|line| line.strip_suffix(']'))
        {
            section = name.to_owned();
            unit.entry(section.clone()).or_insert_with(|| json!({}));
        } else if let Some((key, value)) = line.split_once('=')
            && let Some(keys) = unit.get_mut(&section).and_then(Value::as_object_mut)
        {
            let values = keys.entry(key).or_insert_with(|| json!([]));
            let values = values.as_array_mut().expect("only lists are put there");
            values.push(json!(value));
        } else {
            findings.push(
                FILE,
                format!("expected KEY=VALUE in a section, but it says {line:?}"),
            );
        }
    }
    Value::Object(unit)
}
