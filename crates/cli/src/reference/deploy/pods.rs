//! The nodes that a folder's manifests start, and whether the manifests are consistent.

use super::Findings;
use super::access::{self, SecretFiles};
use super::containers::{Pod, items, selects, text};
use super::files::Files;
use super::image::Image;
use super::kubernetes::Cluster;
use super::tls;
use crate::reference::launch::Launch;
use flotilla_server::{LIVE_PATH, METRICS_PATH, READY_PATH, STOP_TIME, ServerConfig};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// The keys of a TLS secret: certificate, key and authority.
const SECRET: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// How long a node may take until HTTP responds, in seconds: it may first have to take its state
/// from another member, and asks each of them for five minutes (`install_snapshot_timeout`).
const START_TIME: u64 = 3_600;

/// The nodes by pod name.
pub(super) type Nodes = BTreeMap<String, ServerConfig>;

/// A stateful set in its cluster.
struct Set<'a> {
    path: &'a str,
    cluster: &'a Cluster,
    name: &'a str,
    spec: &'a Value,
    pod: &'a Value,
    container: &'a Value,
}

impl<'a> Set<'a> {
    /// The stateful set of a cluster.
    fn of(cluster: &'a Cluster) -> Option<Self> {
        let (path, manifest) = cluster.of_kind("StatefulSet").next()?;
        Some(Self {
            path,
            cluster,
            name: text(&manifest["metadata"]["name"]),
            spec: &manifest["spec"],
            pod: &manifest["spec"]["template"]["spec"],
            container: &manifest["spec"]["template"]["spec"]["containers"][0],
        })
    }

    /// One of its pods.
    fn pod(&self, name: &'a str) -> Pod<'a> {
        Pod {
            path: self.path,
            name,
            namespace: &self.cluster.namespace,
            spec: self.pod,
        }
    }
}

/// Checks what the folder deploys.
pub(super) fn check(cluster: &Cluster, files: &Files, image: &Image, findings: &mut Findings) {
    let Some(set) = Set::of(cluster) else {
        return findings.push(&cluster.path, "expected a StatefulSet");
    };
    let nodes = nodes(cluster, files, image, findings);
    set.pod(set.name).check(image, findings);
    let grace = set.pod["terminationGracePeriodSeconds"].as_u64();
    findings.expect(
        set.path,
        grace.is_some_and(|seconds| seconds >= STOP_TIME.as_secs()),
        "terminationGracePeriodSeconds to be long enough",
    );
    check_environment(&set, findings);
    check_selectors(&set, findings);
    check_ports(&set, findings);
    check_probes(&set, findings);
    for (pod, node) in &nodes {
        check_node(&set, pod, node, findings);
        check_tls(&set, pod, node, findings);
        check_access(&set, pod, node, findings);
        check_peers(&set, pod, &nodes, findings);
    }
    let ids: Vec<u64> = nodes.values().map(|node| node.node_id).collect();
    for (position, id) in ids.iter().enumerate() {
        let is_own = !ids[..position].contains(id);
        findings.expect(
            &cluster.path,
            is_own,
            format!("an id for each node, but two are node {id}"),
        );
    }
}

/// The configuration of each pod.
pub(super) fn nodes(
    cluster: &Cluster,
    files: &Files,
    image: &Image,
    findings: &mut Findings,
) -> Nodes {
    let mut nodes = Nodes::new();
    let Some(set) = Set::of(cluster) else {
        return nodes;
    };
    let replicas = cluster.replicas.or(set.spec["replicas"].as_u64());
    for ordinal in 0..replicas.unwrap_or_default() {
        let pod = format!("{}-{ordinal}", set.name);
        let launch = Launch {
            files: mounted(&set, files),
            ..set.pod(&pod).launch(set.container, image)
        };
        match launch.config() {
            Ok(config) => drop(nodes.insert(pod, config)),
            Err(error) => findings.push(&cluster.path, format!("{pod}: {error}")),
        }
    }
    nodes
}

/// The texts of mounted config maps, by their paths in the pod.
fn mounted(set: &Set<'_>, files: &Files) -> BTreeMap<String, String> {
    let mut mounted = BTreeMap::new();
    for mount in items(&set.container["volumeMounts"]) {
        let volume = items(&set.pod["volumes"]).find(|volume| volume["name"] == mount["name"]);
        let map =
            volume.and_then(|volume| set.cluster.maps.get(text(&volume["configMap"]["name"])));
        for (key, file) in map.into_iter().flatten() {
            let path = format!("{}/{key}", text(&mount["mountPath"]));
            mounted.insert(path, files.text(file).to_owned());
        }
    }
    mounted
}

/// Checks what surrounds the pods: account, namespace, headless service, disruption budget.
fn check_environment(set: &Set<'_>, findings: &mut Findings) {
    let Set {
        path,
        cluster,
        spec,
        pod,
        ..
    } = *set;
    let is_parallel = spec["podManagementPolicy"] == "Parallel";
    findings.expect(path, is_parallel, "Parallel: nodes wait for each other");
    let named = |kind: &str, name: &Value| {
        let mut manifests = cluster.of_kind(kind).map(|(_, manifest)| manifest);
        manifests.find(|manifest| manifest["metadata"]["name"] == *name)
    };
    let account = named("ServiceAccount", &pod["serviceAccountName"]);
    findings.expect(path, account.is_some(), "its service account to be there");
    let namespace = named("Namespace", &json!(cluster.namespace));
    findings.expect(path, namespace.is_some(), "its namespace to be there");
    let names_pods = named("Service", &spec["serviceName"]).is_some_and(|service| {
        let spec = &service["spec"];
        spec["clusterIP"] == "None" && spec["publishNotReadyAddresses"] == true
    });
    findings.expect(
        path,
        names_pods,
        "a headless service with publishNotReadyAddresses",
    );
    for (path, budget) in cluster.of_kind("PodDisruptionBudget") {
        let is_one = budget["spec"]["maxUnavailable"] == 1;
        findings.expect(
            path,
            is_one,
            "maxUnavailable to be 1: three nodes serve without one",
        );
    }
    for (path, policy) in cluster.of_kind("NetworkPolicy") {
        let has_names = items(&policy["spec"]["egress"]).any(is_to_names);
        findings.expect(path, has_names, "names to be asked for, of whomever");
    }
}

/// Whether a rule permits DNS queries: the DNS server differs from cluster to cluster.
fn is_to_names(rule: &Value) -> bool {
    let has = |port: u64, protocol: &str| {
        items(&rule["ports"]).any(|it| it["port"] == port && it["protocol"] == protocol)
    };
    let asks = |protocol| has(53, protocol) && has(5353, protocol);
    rule["to"].is_null() && asks("UDP") && asks("TCP")
}

/// Checks that every selector of pods selects these.
fn check_selectors(set: &Set<'_>, findings: &mut Findings) {
    let labels = &set.spec["template"]["metadata"]["labels"];
    let selectors = [
        ("Service", "/spec/selector"),
        ("StatefulSet", "/spec/selector/matchLabels"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        ("PodMonitor", "/spec/selector/matchLabels"),
    ];
    for (kind, pointer) in selectors {
        for (path, manifest) in set.cluster.of_kind(kind) {
            let selector = manifest.pointer(pointer);
            let is_ours = selector.is_some_and(|selector| selects(selector, labels));
            findings.expect(path, is_ours, format!("{kind} to select the pods"));
        }
    }
    let apart =
        &set.pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let spread = &set.pod["topologySpreadConstraints"];
    for rule in items(apart).chain(items(spread)) {
        let is_ours = rule["labelSelector"] == set.spec["selector"];
        findings.expect(set.path, is_ours, "nodes to be kept apart from each other");
    }
    findings.expect(
        set.path,
        apart[0]["topologyKey"] == "kubernetes.io/hostname",
        "a machine for each node",
    );
}

/// Checks that services, policies and monitors name ports of the container.
fn check_ports(set: &Set<'_>, findings: &mut Findings) {
    let ports: Vec<&str> = items(&set.container["ports"])
        .map(|port| text(&port["name"]))
        .collect();
    let mut used: Vec<(&str, &str)> = Vec::new();
    for (path, service) in set.cluster.of_kind("Service") {
        let targets = items(&service["spec"]["ports"]).map(|port| text(&port["targetPort"]));
        used.extend(targets.map(|port| (path, port)));
    }
    for (path, policy) in set.cluster.of_kind("NetworkPolicy") {
        let rules = items(&policy["spec"]["ingress"]).chain(items(&policy["spec"]["egress"]));
        let named = rules
            .flat_map(|rule| items(&rule["ports"]))
            .filter_map(|port| port["port"].as_str());
        used.extend(named.map(|port| (path, port)));
    }
    for (path, monitor) in set.cluster.of_kind("PodMonitor") {
        for endpoint in items(&monitor["spec"]["podMetricsEndpoints"]) {
            used.push((path, text(&endpoint["port"])));
            let is_metrics = endpoint["path"] == METRICS_PATH;
            findings.expect(path, is_metrics, format!("the path {METRICS_PATH}"));
        }
    }
    for (path, port) in used {
        let is_there = ports.contains(&port);
        findings.expect(
            path,
            is_there,
            format!("a port of the container, but found {port:?}"),
        );
    }
}

/// Checks the probes: a node is restarted only if its liveness probe fails.
fn check_probes(set: &Set<'_>, findings: &mut Findings) {
    let probes = [
        ("startupProbe", LIVE_PATH),
        ("livenessProbe", LIVE_PATH),
        ("readinessProbe", READY_PATH),
    ];
    for (probe, path) in probes {
        let get = &set.container[probe]["httpGet"];
        findings.expect(
            set.path,
            get["path"] == path,
            format!("{probe} to ask {path}"),
        );
        let is_tls = get["scheme"] == "HTTPS";
        findings.expect(set.path, is_tls, format!("{probe} to ask over HTTPS"));
        findings.expect(
            set.path,
            get["port"] == "admin",
            format!("{probe} to ask at the port admin"),
        );
    }
    let start = &set.container["startupProbe"];
    let figure = |key: &str| start[key].as_u64().unwrap_or(0);
    let is_patient = figure("periodSeconds") * figure("failureThreshold") >= START_TIME;
    findings.expect(
        set.path,
        is_patient,
        format!("startupProbe to wait for {START_TIME} s"),
    );
}

/// Checks that a node's ports, directory and names are those of its pod.
fn check_node(set: &Set<'_>, pod: &str, node: &ServerConfig, findings: &mut Findings) {
    let addresses = [
        ("grpc", Some(node.listen)),
        ("peers", Some(node.peer_listen)),
        ("http", Some(node.http_listen)),
        ("admin", node.admin_listen),
    ];
    for (name, address) in addresses {
        let Some(address) = address else {
            findings.push(set.path, format!("expected {pod} to have a port `{name}`"));
            continue;
        };
        let port = items(&set.container["ports"]).find(|port| port["name"] == name);
        let is_served = port.is_some_and(|port| port["containerPort"] == address.port());
        findings.expect(
            set.path,
            is_served,
            format!("{pod} to serve the port `{name}`"),
        );
        findings.expect(
            set.path,
            address.ip().is_unspecified(),
            format!("{pod} to be reached at {name}"),
        );
    }
    let data = node.data_dir.display().to_string();
    let mounts = items(&set.container["volumeMounts"]);
    let mount = mounts
        .into_iter()
        .find(|mount| mount["mountPath"] == data.as_str());
    let claims = &set.spec["volumeClaimTemplates"];
    let is_claimed = mount
        .is_some_and(|mount| items(claims).any(|claim| claim["metadata"]["name"] == mount["name"]));
    findings.expect(
        set.path,
        is_claimed,
        format!("a separate volume for {pod} at {data}"),
    );
    let Cluster { namespace, .. } = set.cluster;
    let service = text(&set.spec["serviceName"]);
    let advertised = format!("{pod}.{service}.{namespace}.svc:{}", node.listen.port());
    let is_advertised = node.advertise.as_deref() == Some(&advertised);
    findings.expect(
        set.path,
        is_advertised,
        format!("{pod} to advertise {advertised}"),
    );
}

/// Checks that a node reads its certificates from a secret, and that a certificate made for the
/// secret names the node.
fn check_tls(set: &Set<'_>, pod: &str, node: &ServerConfig, findings: &mut Findings) {
    let volume = items(&set.pod["volumes"]).find(|volume| volume["secret"].is_object());
    let volume = volume.unwrap_or(&Value::Null);
    let mount = items(&set.container["volumeMounts"]).find(|mount| mount["name"] == volume["name"]);
    let folder = mount.map_or("", |mount| text(&mount["mountPath"]));
    let tls_node = tls::Node {
        path: set.path,
        name: pod,
        config: node,
    };
    let files = tls_node.check(folder, findings);
    findings.expect(
        set.path,
        files == SECRET,
        format!("{pod} to read {SECRET:?}"),
    );
    for (path, certificate) in set.cluster.of_kind("Certificate") {
        let spec = &certificate["spec"];
        if spec["secretName"] != volume["secret"]["secretName"] {
            continue;
        }
        let usages: Vec<&str> = items(&spec["usages"]).map(text).collect();
        let is_node = ["server auth", "client auth"]
            .iter()
            .all(|usage| usages.contains(usage));
        findings.expect(
            path,
            is_node,
            "a certificate of a node to be for servers and clients",
        );
        let names: Vec<&str> = items(&spec["dnsNames"]).map(text).collect();
        let client = format!("{}.{}.svc", set.name, set.cluster.namespace);
        for host in tls::hosts(node)
            .iter()
            .chain([&client, &"localhost".to_owned()])
        {
            let is_named = names.contains(&host.as_str());
            findings.expect(path, is_named, format!("a certificate for {host}"));
        }
    }
    for (path, monitor) in set.cluster.of_kind("PodMonitor") {
        for endpoint in items(&monitor["spec"]["podMetricsEndpoints"]) {
            let authority = &endpoint["tlsConfig"]["ca"]["secret"]["name"];
            let is_tls =
                endpoint["scheme"] == "https" && *authority == volume["secret"]["secretName"];
            findings.expect(
                path,
                is_tls,
                "metrics over HTTPS, with the authority of the nodes",
            );
            let has_token = endpoint["authorization"]["credentials"]["name"].is_string();
            findings.expect(path, has_token, "a token for metrics, in a secret");
        }
    }
}

/// Checks that a node reads the bootstrap token and the keyring from secrets, whose files not every user of the pod can read.
fn check_access(set: &Set<'_>, pod: &str, node: &ServerConfig, findings: &mut Findings) {
    let [bootstrap_token, keyring] = [
        ("bootstrap token", &node.bootstrap_token_file),
        ("keyring", &node.keyring_file),
    ]
    .map(|(what, file)| {
        let folder = file
            .as_deref()
            .and_then(Path::parent)
            .and_then(Path::to_str);
        let volume = set
            .pod(pod)
            .volume(set.container, folder.unwrap_or_default());
        findings.expect(
            set.path,
            volume["secret"]["defaultMode"] == 0o440,
            format!("the {what} of {pod} for its own group only"),
        );
        file.as_deref().filter(|_| volume["secret"].is_object())
    });
    let tls_node = tls::Node {
        path: set.path,
        name: pod,
        config: node,
    };
    let files = SecretFiles {
        bootstrap_token,
        keyring,
    };
    access::check(tls_node, files, findings);
}

/// Checks that peers, and the member that a node joins by, are names of the headless service.
fn check_peers(set: &Set<'_>, pod: &str, nodes: &Nodes, findings: &mut Findings) {
    let service = text(&set.spec["serviceName"]);
    let address = |(pod, node): (&String, &ServerConfig)| {
        (
            node.node_id,
            format!("{pod}.{service}:{}", node.peer_listen.port()),
        )
    };
    let addresses: BTreeMap<u64, String> = nodes.iter().map(address).collect();
    let node = &nodes[pod];
    let path = &set.cluster.path;
    for peer in &node.peers {
        let is_there = addresses.get(&peer.node_id) == Some(&peer.address);
        let (id, address) = (peer.node_id, &peer.address);
        findings.expect(
            path,
            is_there,
            format!("{pod} to find node {id} at {address}"),
        );
    }
    if let Some(member) = &node.join {
        let is_there = addresses
            .iter()
            .any(|(id, address)| address == member && *id != node.node_id);
        findings.expect(
            path,
            is_there,
            format!("{pod} to join by a member, but {member} is not a member"),
        );
    }
}
