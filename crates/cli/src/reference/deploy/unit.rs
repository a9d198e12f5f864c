//! The unit of systemd, its user and its configuration.

use super::Findings;
use super::files::Files;
use super::launch::Launch;
use super::shape;
use super::tls;
use flotilla_server::STOP_TIME;
use serde_json::{Map, Value, json};

pub(super) const FILE: &str = "deploy/systemd/flotilla.service";
pub(super) const CONFIG: &str = "deploy/systemd/flotilla.toml";
pub(super) const USERS: &str = "deploy/systemd/sysusers.conf";

/// Where the files go.
const CONFIG_INSTALLED: &str = "/etc/flotilla/flotilla.toml";
const BINARY_INSTALLED: &str = "/usr/local/bin/flo";

/// Checks the unit and what belongs to it.
pub(super) fn check(files: &Files, findings: &mut Findings) {
    let unit = read(files.text(FILE), findings);
    for mismatch in shape::mismatches("unit", &unit) {
        findings.push(FILE, mismatch);
    }
    let service = |key: &str| unit["Service"][key][0].as_str().unwrap_or_default();
    // A removed node ends with 0 and stays ended; a wrong configuration is not mended by another start.
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
    check_start(
        files,
        service("ExecStart"),
        service("StateDirectory"),
        findings,
    );
}

fn check_start(files: &Files, start: &str, state: &str, findings: &mut Findings) {
    let mut words = start.split(' ').map(str::to_owned);
    let binary = words.next().unwrap_or_default();
    findings.expect(
        FILE,
        binary == BINARY_INSTALLED,
        format!("{BINARY_INSTALLED} to be started"),
    );
    let launch = Launch {
        arguments: words.collect(),
        files: [(CONFIG_INSTALLED.to_owned(), files.text(CONFIG).to_owned())].into(),
        ..Launch::default()
    };
    let config = match launch.config() {
        Ok(config) => config,
        Err(error) => return findings.push(CONFIG, error),
    };
    let is_read = launch.arguments.iter().any(|word| word == CONFIG_INSTALLED);
    findings.expect(FILE, is_read, format!("{CONFIG_INSTALLED} to be read"));
    let data = format!("/var/lib/{state}");
    let is_state = config.data_dir.to_str() == Some(&data);
    findings.expect(
        FILE,
        is_state,
        format!("the data to be in the StateDirectory, {data}"),
    );
    tls::check(CONFIG, "the node", &config, "/etc/flotilla", findings);
    findings.expect_where_peers_look(CONFIG, &config);
}

/// Sections, keys, and all values of each.
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
