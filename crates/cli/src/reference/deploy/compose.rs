//! The compose file: three nodes that find each other.

use super::Findings;
use super::access::{self, SecretFiles};
use super::files::{Files, beside};
use super::image::{self, Image};
use super::jobs::folder;
use super::shape;
use super::tls;
use crate::reference::launch::{Launch, parse};
use flotilla_server::{STOP_TIME, ServerConfig};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

pub(super) const FILE: &str = "deploy/compose/compose.yaml";
/// The overrides for a restored cluster.
pub(super) const RESTORED: &str = "deploy/compose/restored.yaml";

/// The service that makes the certificates, and the volume that holds them.
const CERTIFICATES: &str = "certificates";
/// The service that makes the bootstrap token, in the same volume.
const BOOTSTRAP_TOKEN: &str = "bootstrap-token";
/// The service that makes the keyring, in the same volume.
const KEYRING: &str = "keyring";

/// Checks the compose files.
pub(super) fn check(files: &Files, image: &Image, findings: &mut Findings) {
    let (Some(project), Some(restored)) =
        (read(FILE, files, findings), read(RESTORED, files, findings))
    else {
        return;
    };
    let none = Map::new();
    let services = project["services"].as_object().unwrap_or(&none);
    let mut nodes = BTreeMap::new();
    for (name, service) in services {
        check_service(name, service, files, findings);
        let launch = launch(service, image);
        if generated_in(&launch).is_some() {
            check_generator(name, &launch, service, findings);
            continue;
        }
        match launch.config() {
            Ok(config) => drop(nodes.insert(name.clone(), config)),
            Err(error) => findings.push(FILE, format!("{name}: {error}")),
        }
    }
    findings.expect(FILE, nodes.len() == 3, "three nodes");
    for (name, config) in &nodes {
        check_node(name, config, &services[name], findings);
        check_tls(name, config, services, findings);
        check_access(name, config, services, findings);
        check_peers(name, config, &nodes, findings);
    }
    check_volumes(&project, findings);
    check_restored(&restored, services, image, findings);
}

fn read(path: &str, files: &Files, findings: &mut Findings) -> Option<Value> {
    let project = match files.documents(path) {
        Ok(documents) => documents.into_iter().next().unwrap_or_default(),
        Err(error) => {
            findings.push(path, error);
            return None;
        }
    };
    for mismatch in shape::mismatches("compose", &project) {
        findings.push(path, mismatch);
    }
    Some(project)
}

fn texts(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items
        .filter_map(|item| item.as_str().map(str::to_owned))
        .collect()
}

fn launch(service: &Value, image: &Image) -> Launch {
    let own = service["environment"].as_object().into_iter().flatten();
    let own = own.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let mut variables = image.variables.clone();
    variables.extend(own);
    let arguments = match texts(&service["command"]) {
        none if none.is_empty() => image.command.clone(),
        command => command,
    };
    Launch {
        arguments,
        variables,
        ..Launch::default()
    }
}

/// Checks what every service with the image needs.
fn check_service(name: &str, service: &Value, files: &Files, findings: &mut Findings) {
    let text = |pointer: &str| {
        service
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let image = format!("{}:{}", image::NAME, image::version());
    findings.expect(
        FILE,
        text("/image") == image,
        format!("{name} to be of the image {image}"),
    );
    let context = beside("deploy/compose", text("/build/context"));
    let dockerfile = beside(&context, text("/build/dockerfile"));
    let is_built = context.is_empty() && dockerfile == image::FILE && files.has(&dockerfile);
    findings.expect(
        FILE,
        is_built,
        format!("{name} to be built by {} at the root", image::FILE),
    );
}

/// Checks a node.
fn check_node(name: &str, config: &ServerConfig, service: &Value, findings: &mut Findings) {
    let grace = service["stop_grace_period"].as_str().unwrap_or_default();
    let grace: u64 = grace.trim_end_matches('s').parse().unwrap_or(0);
    let needed = STOP_TIME.as_secs();
    findings.expect(
        FILE,
        grace >= needed,
        format!("{name}: a stop_grace_period of {needed} s at least"),
    );
    let health = texts(&service["healthcheck"]["test"]);
    match health.split_first() {
        Some((kind, call)) if kind == "CMD" => {
            if let Err(error) = parse(call) {
                findings.push(FILE, format!("{name}: healthcheck: {error}"));
            }
        }
        _ => findings.push(
            FILE,
            format!("expected {name} to have a healthcheck without a shell"),
        ),
    }
    for port in texts(&service["ports"]) {
        let inside = port.rsplit(':').next().unwrap_or_default();
        let served = [config.listen.port(), config.http_listen.port()].map(|port| port.to_string());
        let is_served = served.iter().any(|port| port == inside);
        findings.expect(
            FILE,
            is_served,
            format!("{name} to serve what it publishes, but not {inside}"),
        );
        let is_local = port.starts_with("127.0.0.1:");
        findings.expect(
            FILE,
            is_local,
            format!("{name} to publish {port} on this machine only"),
        );
    }
    let data = format!("{name}:{}", config.data_dir.display());
    let has_data = texts(&service["volumes"]).contains(&data);
    findings.expect(
        FILE,
        has_data,
        format!("the volume {data} for the data of {name}"),
    );
    let advertised = format!("{name}:{}", config.listen.port());
    let is_advertised = config.advertise.as_deref() == Some(&advertised);
    findings.expect(
        FILE,
        is_advertised,
        format!("{name} to advertise {advertised}"),
    );
    let listens = [config.listen, config.peer_listen, config.http_listen];
    let is_open = listens.iter().all(|address| address.ip().is_unspecified());
    findings.expect(
        FILE,
        is_open,
        format!("{name} to listen where the others reach it"),
    );
}

/// The folder in which a service makes certificates, the bootstrap token or the keyring; `None` for a node.
fn generated_in(launch: &Launch) -> Option<&str> {
    match &launch.arguments[..] {
        [verb, _, made, ..] if verb == "cert" => Some(made),
        [verb, _, made] if verb == "token" || verb == "keyring" => Some(folder(made)),
        _ => None,
    }
}

/// Checks that files are made in the volume that nodes read, by a service that then ends.
fn check_generator(name: &str, launch: &Launch, service: &Value, findings: &mut Findings) {
    let folder = generated_in(launch).unwrap_or_default();
    let words: Vec<String> = ["flo".to_owned()]
        .into_iter()
        .chain(launch.arguments.clone())
        .collect();
    if let Err(error) = parse(&words) {
        findings.push(FILE, format!("{name}: {error}"));
    }
    let is_kept = texts(&service["volumes"]) == [format!("{CERTIFICATES}:{folder}")];
    findings.expect(
        FILE,
        is_kept,
        format!("{name} to write to the volume {CERTIFICATES}"),
    );
    // Only one directory of the image is writable for its user; a new volume inherits that.
    let is_ours = launch
        .variables
        .get("FLO_DATA_DIR")
        .is_some_and(|data| data == folder);
    findings.expect(
        FILE,
        is_ours,
        format!("{name} to write where the image's user may"),
    );
    findings.expect(
        FILE,
        service["restart"] == "no",
        format!("{name} to run once"),
    );
}

/// Checks that a node reads its certificates from the volume once they exist, and that they cover
/// its names.
fn check_tls(
    name: &str,
    config: &ServerConfig,
    services: &Map<String, Value>,
    findings: &mut Findings,
) {
    let service = &services[name];
    let node = tls::Node {
        path: FILE,
        name,
        config,
    };
    let files = node.check(&generated_folder(service), findings);
    findings.expect(
        FILE,
        files == tls::MADE,
        format!("{name} to read {:?}", tls::MADE),
    );
    expect_waits(name, service, CERTIFICATES, findings);
    let certified = texts(&services[CERTIFICATES]["command"]);
    for host in tls::hosts(config) {
        let is_named = certified
            .windows(2)
            .any(|pair| pair == ["--host", host.as_str()]);
        findings.expect(FILE, is_named, format!("a certificate for {host}"));
    }
}

/// The folder at which a node has the volume with its certificates, the bootstrap token and the keyring; empty without one.
fn generated_folder(service: &Value) -> String {
    let volumes = texts(&service["volumes"]);
    let mut mounts = volumes.iter().filter_map(|volume| {
        let mount = volume.strip_prefix(CERTIFICATES)?.strip_prefix(':')?;
        mount.strip_suffix(":ro")
    });
    mounts.next().unwrap_or_default().to_owned()
}

/// Checks that a node waits until the service has made its files.
fn expect_waits(name: &str, service: &Value, generator: &str, findings: &mut Findings) {
    let condition = &service["depends_on"][generator]["condition"];
    let waits = condition == "service_completed_successfully";
    findings.expect(FILE, waits, format!("{name} to wait for {generator}"));
}

/// Checks that a node reads the bootstrap token and the keyring once they exist.
fn check_access(
    name: &str,
    config: &ServerConfig,
    services: &Map<String, Value>,
    findings: &mut Findings,
) {
    let file = |generator: &str| {
        let made = texts(&services[generator]["command"]);
        let made = Path::new(made.last()?).file_name()?.to_owned();
        Some(Path::new(&generated_folder(&services[name])).join(made))
    };
    let [bootstrap_token, keyring] = [BOOTSTRAP_TOKEN, KEYRING].map(file);
    let node = tls::Node {
        path: FILE,
        name,
        config,
    };
    let files = SecretFiles {
        bootstrap_token: bootstrap_token.as_deref(),
        keyring: keyring.as_deref(),
    };
    access::check(node, files, findings);
    for generator in [BOOTSTRAP_TOKEN, KEYRING] {
        expect_waits(name, &services[name], generator, findings);
    }
}

/// Checks that each peer is the service of that name, with that id and that port.
fn check_peers(
    name: &str,
    config: &ServerConfig,
    nodes: &BTreeMap<String, ServerConfig>,
    findings: &mut Findings,
) {
    findings.expect(
        FILE,
        config.peers.len() == nodes.len(),
        format!("{name} to know all nodes"),
    );
    for peer in &config.peers {
        let (host, port) = peer.address.rsplit_once(':').unwrap_or_default();
        let is_node = nodes.get(host).is_some_and(|node| {
            node.node_id == peer.node_id && node.peer_listen.port().to_string() == port
        });
        let (node_id, address) = (peer.node_id, &peer.address);
        findings.expect(
            FILE,
            is_node,
            format!("{name} to find node {node_id} at {address}"),
        );
    }
}

/// Checks that exactly the declared volumes are used.
fn check_volumes(project: &Value, findings: &mut Findings) {
    let services = project["services"].as_object().into_iter().flatten();
    let used = services.flat_map(|(_, service)| texts(&service["volumes"]));
    let mut used: Vec<String> = used
        .filter_map(|volume| Some(volume.split_once(':')?.0.to_owned()))
        .collect();
    used.sort();
    used.dedup();
    let declared = project["volumes"].as_object().into_iter().flatten();
    let mut declared: Vec<String> = declared.map(|(name, _)| name.clone()).collect();
    declared.sort();
    findings.expect(
        FILE,
        used == declared,
        format!("the volumes {used:?}, but they are {declared:?}"),
    );
}

/// With the overrides, the first node forms the cluster alone and the others join it.
fn check_restored(
    restored: &Value,
    services: &Map<String, Value>,
    image: &Image,
    findings: &mut Findings,
) {
    let mut nodes = Vec::new();
    for (name, changes) in restored["services"].as_object().into_iter().flatten() {
        let mut service = services.get(name).cloned().unwrap_or_default();
        let changes = changes["environment"].as_object().into_iter().flatten();
        for (variable, value) in changes {
            service["environment"][variable] = value.clone();
        }
        match launch(&service, image).config() {
            Ok(config) => nodes.push(config),
            Err(error) => findings.push(RESTORED, format!("{name}: {error}")),
        }
    }
    let first = nodes.iter().find(|node| node.join.is_none());
    let is_alone = first.is_some_and(|node| node.peers.len() == 1);
    findings.expect(RESTORED, is_alone, "one first node, its only peer");
    let address = first.and_then(|node| Some(&node.peers.first()?.address));
    let joining = nodes.iter().filter(|node| node.join.as_ref() == address);
    let is_joined = address.is_some() && joining.count() == 2;
    findings.expect(RESTORED, is_joined, "two nodes that join the first one");
}
