//! The nodes that a folder's manifests start, and whether the manifests fit each other.

use super::Findings;
use super::files::Files;
use super::image::{self, Image};
use super::kubernetes::Cluster;
use super::launch::Launch;
use super::tls;
use flotilla_server::{LIVE_PATH, METRICS_PATH, READY_PATH, STOP_TIME, ServerConfig};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The keys of a secret of TLS, as certificate, key and authority.
const SECRET: [&str; 3] = ["tls.crt", "tls.key", "ca.crt"];

/// The nodes by the names of their pods.
type Nodes = BTreeMap<String, ServerConfig>;

/// A stateful set in its cluster.
struct Set<'a> {
    path: &'a str,
    cluster: &'a Cluster,
    name: &'a str,
    spec: &'a Value,
    pod: &'a Value,
    container: &'a Value,
}

/// Checks what the folder deploys.
pub(super) fn check(cluster: &Cluster, files: &Files, image: &Image, findings: &mut Findings) {
    let Some((path, manifest)) = cluster.of_kind("StatefulSet").next() else {
        return findings.push(&cluster.path, "expected a StatefulSet");
    };
    let set = Set {
        path,
        cluster,
        name: manifest["metadata"]["name"].as_str().unwrap_or_default(),
        spec: &manifest["spec"],
        pod: &manifest["spec"]["template"]["spec"],
        container: &manifest["spec"]["template"]["spec"]["containers"][0],
    };
    let nodes = nodes(&set, files, image, findings);
    check_pod(&set, image, findings);
    check_surroundings(&set, findings);
    check_selectors(&set, findings);
    check_ports(&set, findings);
    check_probes(&set, findings);
    for (pod, node) in &nodes {
        check_node(&set, pod, node, findings);
        check_tls(&set, pod, node, findings);
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

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The configuration of each pod.
fn nodes(set: &Set<'_>, files: &Files, image: &Image, findings: &mut Findings) -> Nodes {
    let replicas = set.cluster.replicas.or(set.spec["replicas"].as_u64());
    let mut nodes = Nodes::new();
    for ordinal in 0..replicas.unwrap_or_default() {
        let pod = format!("{}-{ordinal}", set.name);
        match launch(set, &pod, files, image).config() {
            Ok(config) => drop(nodes.insert(pod, config)),
            Err(error) => findings.push(&set.cluster.path, format!("{pod}: {error}")),
        }
    }
    nodes
}

/// How a pod starts its node: `$(NAME)` stands for a variable.
fn launch(set: &Set<'_>, pod: &str, files: &Files, image: &Image) -> Launch {
    let mut variables = image.variables.clone();
    let mut known: Vec<(String, String)> = Vec::new();
    let expand = |value: &str, known: &[(String, String)]| {
        let replace = |value: String, (name, known): &(String, String)| {
            value.replace(&format!("$({name})"), known)
        };
        known.iter().fold(value.to_owned(), replace)
    };
    for variable in items(&set.container["env"]) {
        let value = match text(&variable["valueFrom"]["fieldRef"]["fieldPath"]) {
            "metadata.name" => pod.to_owned(),
            "metadata.namespace" => set.cluster.namespace.clone(),
            _ => expand(text(&variable["value"]), &known),
        };
        known.push((text(&variable["name"]).to_owned(), value));
    }
    let arguments = items(&set.container["args"]).map(|word| expand(text(word), &known));
    let arguments = arguments.collect();
    variables.extend(known);
    Launch {
        arguments,
        variables,
        files: mounted(set, files),
    }
}

/// The texts of mounted maps, by the paths of their files in the pod.
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

/// What holds of a pod whatever its node is told.
fn check_pod(set: &Set<'_>, image: &Image, findings: &mut Findings) {
    let Set { pod, container, .. } = *set;
    let user: Option<u64> = image.user.parse().ok();
    let context = &pod["securityContext"];
    let own = &container["securityContext"];
    let memory = |bound: &str| &container["resources"][bound]["memory"];
    let grace = pod["terminationGracePeriodSeconds"].as_u64();
    let is_patient = grace.is_some_and(|seconds| seconds >= STOP_TIME.as_secs());
    let filter = &context["seccompProfile"]["type"];
    let no_token = pod["automountServiceAccountToken"] == false;
    let expectations = [
        (
            is_patient,
            "terminationGracePeriodSeconds to be long enough",
        ),
        (
            container["image"] == image::NAME,
            "the image that the kustomization names",
        ),
        (
            context["runAsUser"].as_u64() == user,
            "the user of the image",
        ),
        (
            context["fsGroup"].as_u64() == user,
            "volumes to be the user's",
        ),
        (context["runAsNonRoot"] == true, "a user that is not root"),
        (
            filter == "RuntimeDefault",
            "calls of the system to be filtered",
        ),
        (
            own["allowPrivilegeEscalation"] == false,
            "no privileges to be gained",
        ),
        (
            own["readOnlyRootFilesystem"] == true,
            "a root that is not written to",
        ),
        (
            own["capabilities"]["drop"] == json!(["ALL"]),
            "no capabilities",
        ),
        (no_token, "no token"),
        (memory("requests").is_string(), "memory to be asked for"),
        (memory("limits").is_string(), "memory to be bounded"),
    ];
    for (is_so, expectation) in expectations {
        findings.expect(set.path, is_so, expectation);
    }
}

/// What stands around the pods: account, namespace, headless service, budget.
fn check_surroundings(set: &Set<'_>, findings: &mut Findings) {
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
}

/// Whatever selects pods selects these.
fn check_selectors(set: &Set<'_>, findings: &mut Findings) {
    let none = Map::new();
    let labels = set.spec["template"]["metadata"]["labels"]
        .as_object()
        .unwrap_or(&none);
    let selectors = [
        ("Service", "/spec/selector"),
        ("StatefulSet", "/spec/selector/matchLabels"),
        ("PodDisruptionBudget", "/spec/selector/matchLabels"),
        ("NetworkPolicy", "/spec/podSelector/matchLabels"),
        ("PodMonitor", "/spec/selector/matchLabels"),
    ];
    for (kind, pointer) in selectors {
        for (path, manifest) in set.cluster.of_kind(kind) {
            let selector = manifest
                .pointer(pointer)
                .and_then(Value::as_object)
                .unwrap_or(&none);
            let is_ours = selector
                .iter()
                .all(|(name, value)| labels.get(name) == Some(value));
            findings.expect(
                path,
                is_ours && !selector.is_empty(),
                format!("{kind} to select the pods"),
            );
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

/// Services, policies and monitors name ports of the container.
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
            format!("a port of the container, but {port:?} is none"),
        );
    }
}

/// Probes ask what there is: a node is started again when it does not live, and only then.
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
            get["port"] == "http",
            format!("{probe} to ask at the port http"),
        );
    }
}

/// A node's ports, folder and names are those of its pod.
fn check_node(set: &Set<'_>, pod: &str, node: &ServerConfig, findings: &mut Findings) {
    let addresses = [
        ("grpc", node.listen),
        ("peers", node.peer_listen),
        ("http", node.http_listen),
    ];
    for (name, address) in addresses {
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
        format!("a volume of its own for {pod} at {data}"),
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

/// A node reads its certificates from a secret; a certificate that is made for the secret names the node.
fn check_tls(set: &Set<'_>, pod: &str, node: &ServerConfig, findings: &mut Findings) {
    let volume = items(&set.pod["volumes"]).find(|volume| volume["secret"].is_object());
    let volume = volume.unwrap_or(&Value::Null);
    let mount = items(&set.container["volumeMounts"]).find(|mount| mount["name"] == volume["name"]);
    let folder = mount.map_or("", |mount| text(&mount["mountPath"]));
    let files = tls::check(set.path, pod, node, folder, findings);
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
        }
    }
}

/// Peers, and the member that a node joins by, are found where the headless service names them.
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
            format!("{pod} to join by a member, but {member} is none"),
        );
    }
}
