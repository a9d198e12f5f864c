//! The three nodes of a local cluster, and the Prometheus that scrapes them.

use super::Findings;
use super::files::{Files, beside};
use super::tls;
use crate::reference::launch::Launch;
use flotilla_server::ServerConfig;

pub(super) const FOLDER: &str = "deploy/local/";
/// The directory in which `flo cert dev` makes them.
const CERTIFICATES: &str = ".flo/certificates";
pub(super) const PROMETHEUS: &str = "deploy/prometheus/prometheus.yml";

/// Checks the configurations, and that Prometheus scrapes each node.
pub(super) fn check(files: &Files, findings: &mut Findings) {
    let mut nodes = Vec::new();
    for path in files.paths().filter(|path| path.starts_with(FOLDER)) {
        match config(path, files.text(path)) {
            Ok(config) => nodes.push((path, config)),
            Err(error) => findings.push(path, error),
        }
    }
    for (path, config) in &nodes {
        let name = format!("{FOLDER}node{}.toml", config.node_id);
        findings.expect(path, *path == name, format!("the configuration of {name}"));
        let has_peers = config.peers == nodes[0].1.peers && config.peers.len() == nodes.len();
        findings.expect(path, has_peers, "all nodes in the list of peers");
        findings.expect_where_peers_look(path, config);
        let node = tls::Node {
            path,
            name: "the node",
            config,
        };
        let made = node.check(CERTIFICATES, findings);
        findings.expect(
            path,
            made == tls::MADE,
            format!("the files {:?}", tls::MADE),
        );
    }
    check_targets(files, nodes.iter().map(|(_, config)| config), findings);
}

fn config(path: &str, text: &str) -> Result<ServerConfig, String> {
    let launch = Launch {
        arguments: ["server", "--config", path].map(str::to_owned).to_vec(),
        files: [(path.to_owned(), text.to_owned())].into(),
        ..Launch::default()
    };
    launch.config()
}

fn check_targets<'a>(
    files: &Files,
    nodes: impl Iterator<Item = &'a ServerConfig>,
    findings: &mut Findings,
) {
    let prometheus = match files.documents(PROMETHEUS) {
        Ok(documents) => documents.into_iter().next().unwrap_or_default(),
        Err(error) => return findings.push(PROMETHEUS, error),
    };
    let scraped = &prometheus["scrape_configs"][0]["static_configs"][0]["targets"];
    let nodes: Vec<String> = nodes.map(|config| config.http_listen.to_string()).collect();
    let is_scraped = *scraped == serde_json::json!(nodes);
    findings.expect(
        PROMETHEUS,
        is_scraped,
        format!("the targets {nodes:?}, but they are {scraped}"),
    );
    let scrape = &prometheus["scrape_configs"][0];
    let authority = scrape["tls_config"]["ca_file"].as_str().unwrap_or_default();
    let is_made = beside("deploy/prometheus", authority) == format!("{CERTIFICATES}/ca.pem");
    let is_tls = scrape["scheme"] == "https" && is_made;
    findings.expect(
        PROMETHEUS,
        is_tls,
        "metrics over HTTPS, with the authority of the nodes",
    );
    let rules = prometheus["rule_files"][0].as_str().unwrap_or_default();
    let has_rules = files.has(&format!("deploy/prometheus/{rules}"));
    findings.expect(PROMETHEUS, has_rules, "rules that are there");
}
