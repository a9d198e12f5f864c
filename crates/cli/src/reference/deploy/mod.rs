//! Checks the files of `deploy` against flo: flags, variables and keys exist, ports, paths and
//! volumes match the nodes, and the files are consistent with each other.

mod access;
mod compose;
mod containers;
mod files;
mod image;
mod jobs;
mod kubernetes;
mod local;
mod pods;
mod rescue;
mod shape;
mod tls;
mod unit;

use self::files::{Files, root};
use flotilla_server::ServerConfig;
use std::fmt::Display;
use std::fs;

/// The faults found, each with its file.
#[derive(Debug, Default)]
struct Findings(Vec<String>);

impl Findings {
    /// Records a fault of a file.
    fn push(&mut self, path: &str, finding: impl Display) {
        self.0.push(format!("{path}: {finding}"));
    }

    /// Expects what the sentence continues with.
    fn expect(&mut self, path: &str, is_so: bool, expectation: impl Display) {
        if !is_so {
            self.push(path, format!("expected {expectation}"));
        }
    }

    /// Expects a node to listen at its address in the list of peers.
    fn expect_where_peers_look(&mut self, path: &str, config: &ServerConfig) {
        let mut peers = config.peers.iter();
        let own = peers.find(|peer| peer.node_id == config.node_id);
        let is_own = own.is_some_and(|peer| peer.address == config.peer_listen.to_string());
        self.expect(
            path,
            is_own,
            "the node to listen where its peers look for it",
        );
    }
}

/// All faults of the files.
fn findings(files: &Files) -> Vec<String> {
    let mut findings = Findings::default();
    for path in files.paths().filter(|path| !is_checked(path)) {
        findings.push(path, "expected a file that a test checks, but none does");
    }
    let image = image::check(files, &mut findings);
    compose::check(files, &image, &mut findings);
    kubernetes::check(files, &image, &mut findings);
    unit::check(files, &mut findings);
    local::check(files, &mut findings);
    // A fault of a shared file is found in each kustomization that uses it.
    findings.0.sort();
    findings.0.dedup();
    findings.0
}

/// Whether a test checks the file, in this module or elsewhere: the alerts, the dashboard and the
/// document.
fn is_checked(path: &str) -> bool {
    path.starts_with(kubernetes::FOLDER)
        || path.starts_with(local::FOLDER)
        || [
            compose::FILE,
            compose::RESTORED,
            image::FILE,
            image::IGNORED,
            local::PROMETHEUS,
            unit::BACKUPS,
            unit::FILE,
            unit::CONFIG,
            unit::USERS,
            "deploy/README.md",
            "deploy/grafana/flotilla.json",
            "deploy/prometheus/alerts.yml",
        ]
        .contains(&path)
}

#[test]
fn every_file_is_one_that_flo_takes() {
    let files = Files::read();
    assert!(files.paths().count() > 20, "the walk reaches the files");
    let findings = findings(&files);
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Mutations: a file, a text, its replacement, and a part of the fault that must be found.
const SPOILT: &[(&str, &str, &str, &str)] = &[
    (image::FILE, "rust:1.95", "rust:1.90", "rust 1.95"),
    (image::FILE, "flotilla-cli", "flotilla-cly", "flotilla-cly"),
    (image::FILE, "COPY . .", "COPY deploy .", "ignored"),
    (image::FILE, "COPY . .", "COPY lost .", "`lost`"),
    (image::FILE, "EXPOSE 9000", "EXPOSE 9009", "EXPOSE"),
    (image::FILE, "USER 65532:65532", "USER nonroot", "number"),
    (
        image::FILE,
        "ENTRYPOINT [\"flo\"]",
        "ENTRYPOINT [\"fla\"]",
        "`fla`",
    ),
    (image::FILE, "/out/flo /usr", "/out/fly /usr", "/out/fly"),
    (
        image::FILE,
        "VOLUME [\"/var/lib/",
        "VOLUME [\"/srv/",
        "VOLUME",
    ),
    (image::FILE, "STOPSIGNAL", "STOPSIGNALS", "STOPSIGNALS"),
    (image::FILE, "FLO_DATA_DIR", "FLO_DATA", "FLO_DATA"),
    (image::IGNORED, "docs", "sim", "`sim`"),
    (compose::FILE, "FLO_PEERS:", "FLO_PEER:", "FLO_PEER"),
    (
        compose::FILE,
        "stop_grace_period",
        "stop_grace",
        "stop_grace",
    ),
    (
        compose::FILE,
        "stop_grace_period: 60s",
        "stop_grace_period: 5s",
        "stop_grace_period",
    ),
    (
        compose::FILE,
        "\"cluster\", \"health\"",
        "\"cluster\", \"state\"",
        "state",
    ),
    (compose::FILE, "node1:9001,", "node4:9001,", "node4"),
    (
        compose::FILE,
        "FLO_NODE_ID: \"3\"",
        "FLO_NODE_ID: \"2\"",
        "node 3",
    ),
    (
        compose::FILE,
        "127.0.0.1:9010:9000",
        "127.0.0.1:9010:9005",
        "9005",
    ),
    (compose::FILE, "node2:/var/lib", "node2:/srv/lib", "data"),
    (
        compose::FILE,
        "read_only: true",
        "read_only: maybe",
        "read_only",
    ),
    (
        STATEFUL_SET,
        "readOnlyRootFilesystem",
        "readOnlyRootFileSystem",
        "readOnlyRootFileSystem",
    ),
    (STATEFUL_SET, "path: /readyz", "path: /ready", "/readyz"),
    (STATEFUL_SET, "Parallel", "OrderedReady", "Parallel"),
    (
        STATEFUL_SET,
        "containerPort: 9001",
        "containerPort: 9003",
        "`peers`",
    ),
    (
        STATEFUL_SET,
        "mountPath: /var/lib",
        "mountPath: /srv/lib",
        "/var/lib/flotilla",
    ),
    (
        STATEFUL_SET,
        "terminationGracePeriodSeconds: 60",
        "terminationGracePeriodSeconds: 6",
        "terminationGracePeriodSeconds",
    ),
    (STATEFUL_SET, "\"--config\"", "\"--conf\"", "--conf"),
    (
        STATEFUL_SET,
        "FLO_LOG_FORMAT",
        "FLO_LOG_FORM",
        "FLO_LOG_FORM",
    ),
    (
        STATEFUL_SET,
        "flotilla-peers.$",
        "flotilla-pears.$",
        "advertise",
    ),
    (STATEFUL_SET, "replicas: 3", "replicas: 4", "flotilla-3"),
    (SERVICES, "targetPort: peers", "targetPort: pears", "pears"),
    (
        SERVICES,
        "publishNotReadyAddresses: true",
        "publishNotReadyAddresses: false",
        "publishNotReadyAddresses",
    ),
    (
        DISRUPTION,
        "maxUnavailable: 1",
        "maxUnavailable: 2",
        "maxUnavailable",
    ),
    (DISRUPTION, "name: flotilla\n", "nam: flotilla\n", "nam"),
    (POD, "node_id = 2", "node_id = 3", "node 3"),
    (POD, "peers =", "pears =", "pears"),
    (
        unit::FILE,
        "[Install]",
        "MemoryDenyWriteExecute=yes\n[Install]",
        "MemoryDenyWriteExecute",
    ),
    (
        unit::FILE,
        "StateDirectory=flotilla",
        "StateDirectory=flo",
        "StateDirectory",
    ),
    (
        unit::CONFIG,
        "peer_listen =",
        "peers_listen =",
        "peers_listen",
    ),
    (
        local::PROMETHEUS,
        "127.0.0.1:9012",
        "127.0.0.1:9013",
        "9012",
    ),
    (
        compose::FILE,
        "\"--host\", \"node2\"",
        "\"--host\", \"node4\"",
        "certificate for node2",
    ),
    (
        compose::FILE,
        "certificates:/var",
        "node1:/var",
        "volume certificates",
    ),
    (
        compose::FILE,
        "/node-key.pem",
        "/client-key.pem",
        "node-key.pem",
    ),
    (STATEFUL_SET, "scheme: HTTPS", "scheme: HTTP", "HTTPS"),
    (
        STATEFUL_SET,
        "/etc/flotilla/tls/ca.crt",
        "/etc/flotilla/ca.crt",
        "TLS",
    ),
    (
        CERTIFICATES,
        "- flotilla-1.flotilla-peers\n",
        "- flotilla-7.flotilla-peers\n",
        "flotilla-1.flotilla-peers",
    ),
    (
        compose::FILE,
        "FLO_BOOTSTRAP_TOKEN_FILE: /etc/flotilla/certificates/",
        "FLO_BOOTSTRAP_TOKEN_FILE: /etc/flotilla/",
        "bootstrap token",
    ),
    (
        compose::FILE,
        "\"generate\", \"/var/lib/flotilla/bootstrap.token\"",
        "\"generate\", \"/var/lib/flotilla/other.token\"",
        "bootstrap token",
    ),
    (
        compose::FILE,
        "bootstrap-token:\n      condition: service_completed",
        "bootstrap-token:\n      condition: service_started",
        "wait for bootstrap-token",
    ),
    (
        compose::FILE,
        "FLO_KEYRING_FILE: /etc/flotilla/certificates/",
        "FLO_KEYRING_FILE: /etc/flotilla/",
        "keyring",
    ),
    (
        compose::FILE,
        "keyring:\n      condition: service_completed",
        "keyring:\n      condition: service_started",
        "wait for keyring",
    ),
    (
        STATEFUL_SET,
        "value: /etc/flotilla/keyring/keyring",
        "value: /etc/flotilla/lost/keyring",
        "keyring",
    ),
    (
        unit::CONFIG,
        "keyring_file =",
        "# keyring_file =",
        "keyring",
    ),
    (
        STATEFUL_SET,
        "value: /etc/flotilla/bootstrap/token",
        "value: /etc/flotilla/lost/token",
        "bootstrap token",
    ),
    (
        STATEFUL_SET,
        "defaultMode: 288",
        "defaultMode: 292",
        "own group only",
    ),
    (
        unit::CONFIG,
        "bootstrap_token_file =",
        "# bootstrap_token_file =",
        "bootstrap token",
    ),
    (
        unit::CONFIG,
        "node_id = 1",
        "node_id = 1\naccess = \"open\"\ninsecure = true",
        "closed cluster",
    ),
    (unit::CONFIG, "tls_ca =", "insecure = true # ", "tls_ca"),
    (local::PROMETHEUS, "scheme: https", "scheme: http", "HTTPS"),
    (
        compose::RESTORED,
        "FLO_PEERS: \"\"",
        "FLO_PEERS: 1=node1:9001",
        "node2",
    ),
    (
        compose::RESTORED,
        "FLO_JOIN: node1:9001",
        "FLO_JOIN: node3:9001",
        "join the first one",
    ),
    (
        STATEFUL_SET,
        "failureThreshold: 1800",
        "failureThreshold: 150",
        "startupProbe",
    ),
    (
        DISRUPTION,
        "IfHealthyBudget",
        "AlwaysAllow",
        "unhealthyPodEvictionPolicy",
    ),
    (NETWORK_POLICY, "- port: 5353", "- port: 5354", "names"),
    (
        FIVE_NODES,
        "kind: Component",
        "kind: Kustomization",
        "a Component",
    ),
    (
        FIVE_NODES,
        "behavior: merge",
        "behavior: create",
        "to be made once",
    ),
    (
        FIVE_NODES,
        "replicas:",
        "resources:\n  - ../../base\nreplicas:",
        "StatefulSet flotilla once",
    ),
    (
        EXAMPLE,
        "components/backups",
        "components/backup",
        "components/backup/",
    ),
    (EXAMPLE, "newTag: 0.1.0", "newTag: latest", "flotilla:"),
    (
        CRON_JOB,
        "\"cluster\", \"backup\"",
        "\"cluster\", \"backups\"",
        "backups",
    ),
    (
        CRON_JOB,
        "claimName: flotilla-backups",
        "claimName: flotilla-backup",
        "on a claim",
    ),
    (
        CRON_JOB,
        "flotilla.flotilla.svc",
        "flotilla.default.svc",
        "FLO_ENDPOINT",
    ),
    (
        CRON_JOB,
        "flotilla-client: \"true\"",
        "flotilla-client: \"no\"",
        "let it in",
    ),
    (
        CRON_JOB,
        "secretName: flotilla-client",
        "secretName: flotilla-clients",
        "a secret that is made",
    ),
    (CRON_JOB, "busybox:1.37", "busybox", "image"),
    (RESCUE, "data-flotilla-0", "data-flotilla", "the data of"),
    (
        RESCUE,
        "--data-dir=/var/lib/flotilla",
        "--data-dir=/var/lib/flo",
        "the data of",
    ),
    (
        RESTORE,
        "flotilla-0.flotilla-peers:",
        "flotilla-0:",
        "the addresses of",
    ),
    (
        RESTORE,
        "storage: 20Gi",
        "storage: 2Gi",
        "as the stateful set",
    ),
    (
        unit::BACKUPS,
        "10.0.0.1:9000",
        "10.0.0.1:9001",
        "FLO_ENDPOINT",
    ),
    (unit::BACKUPS, "--force", "--forced", "--forced"),
];
const STATEFUL_SET: &str = "deploy/kubernetes/base/stateful-set.yaml";
const CERTIFICATES: &str = "deploy/kubernetes/components/cert-manager/certificates.yaml";
const CRON_JOB: &str = "deploy/kubernetes/components/backups/cron-job.yaml";
const FIVE_NODES: &str = "deploy/kubernetes/components/five-nodes/kustomization.yaml";
const EXAMPLE: &str = "deploy/kubernetes/example/kustomization.yaml";
const NETWORK_POLICY: &str = "deploy/kubernetes/base/network-policy.yaml";
const RESCUE: &str = "deploy/kubernetes/rescue/backup.yaml";
const RESTORE: &str = "deploy/kubernetes/rescue/restore.yaml";
const SERVICES: &str = "deploy/kubernetes/base/services.yaml";
const DISRUPTION: &str = "deploy/kubernetes/base/pod-disruption-budget.yaml";
const POD: &str = "deploy/kubernetes/base/nodes/flotilla-1.toml";

#[test]
fn what_is_spoilt_is_found() {
    let files = Files::read();
    let mut missed = String::new();
    for &(path, part, replacement, expected) in SPOILT {
        let text = files.text(path);
        assert!(text.contains(part), "{path} says {part:?}");
        let spoilt = files.with(path, &text.replacen(part, replacement, 1));
        let findings = findings(&spoilt).join("\n");
        if !findings.contains(expected) {
            missed.push_str(&format!("{path} with {replacement:?}: {findings:?}\n"));
        }
    }
    assert!(missed.is_empty(), "{missed}");
}

#[test]
fn the_configuration_of_a_node_that_is_added_fits_the_unit() {
    let pages = fs::read_dir(root().join("docs/operations")).expect("a folder of the project");
    let pages = pages.map(|page| page.expect("a page of the folder").path());
    let read = |page| fs::read_to_string(page).expect("a document of the project");
    let guide: String = pages.map(read).collect();
    let blocks = guide.split("```toml\n").skip(1);
    let blocks = blocks.filter_map(|block| block.split("```").next());
    let whole: Vec<&str> = blocks
        .filter(|block| block.starts_with("# /etc/flotilla/flotilla.toml"))
        .collect();
    assert!(!whole.is_empty(), "docs/operations shows one");
    for block in whole {
        let mut findings = Findings::default();
        let config = unit::check_config(block, "flotilla", &mut findings);
        assert_eq!(findings.0, [""; 0]);
        assert!(config.is_some_and(|config| config.join.is_some()));
    }
}

#[test]
fn an_unknown_file_is_found() {
    let files = Files::read();
    for path in [
        "deploy/nomad/flotilla.hcl",
        "deploy/kubernetes/base/secret.yaml",
        "deploy/kubernetes/rescue/secret.yaml",
    ] {
        let findings = findings(&files.with(path, "kind: Secret\n"));
        assert!(findings.iter().any(|finding| finding.starts_with(path)));
    }
}
