//! Scheduled jobs: online backups.

use super::Findings;
use super::containers::{Pod, items, selects, text};
use super::image::Image;
use super::kubernetes::Cluster;
use crate::reference::launch::Launch;
use serde_json::Value;
use std::path::Path;

/// The certificate, key and authority that `flo` uses.
const TLS: [&str; 3] = ["FLO_TLS_CERT", "FLO_TLS_KEY", "FLO_TLS_CA"];

/// Checks each scheduled job.
pub(super) fn check(cluster: &Cluster, image: &Image, findings: &mut Findings) {
    for (path, job) in cluster.of_kind("CronJob") {
        let template = &job["spec"]["jobTemplate"]["spec"]["template"];
        let pod = Pod {
            path,
            name: "flotilla-backup-1-a",
            namespace: &cluster.namespace,
            spec: &template["spec"],
        };
        pod.check(image, findings);
        let is_let_in = is_let_in(cluster, &template["metadata"]["labels"]);
        findings.expect(path, is_let_in, "the network policy to let it in");
        let mut calls = pod.of_flo();
        match (calls.next(), calls.next()) {
            (Some(container), None) => {
                let launch = pod.launch(container, image);
                if let Err(error) = launch.check() {
                    findings.push(path, error);
                }
                let call = Call {
                    pod,
                    container,
                    launch,
                };
                check_backup(&call, cluster, findings);
            }
            _ => findings.push(path, "expected one container of flo"),
        }
    }
}

/// A call of flo by a container of a pod.
struct Call<'a> {
    pod: Pod<'a>,
    container: &'a Value,
    launch: Launch,
}

/// Checks that a backup goes to an existing claim, and calls the clients' service with a client
/// certificate.
fn check_backup(call: &Call<'_>, cluster: &Cluster, findings: &mut Findings) {
    let Call {
        pod,
        container,
        launch,
    } = call;
    let [cluster_verb, backup_verb, file, ..] = &launch.arguments[..] else {
        return findings.push(pod.path, "expected `flo cluster backup FILE`");
    };
    let is_backup = cluster_verb == "cluster" && backup_verb == "backup";
    findings.expect(pod.path, is_backup, "`flo cluster backup`");
    let claim = pod.claim(container, folder(file));
    let mut claims = cluster.of_kind("PersistentVolumeClaim");
    let is_claimed = claims.any(|(_, it)| it["metadata"]["name"] == claim);
    findings.expect(pod.path, is_claimed, format!("{file} to be on a claim"));
    let variable = |name: &str| launch.variables.get(name).map_or("", String::as_str);
    let endpoint = variable("FLO_ENDPOINT");
    let is_served = endpoints(cluster).any(|served| served == endpoint);
    findings.expect(
        pod.path,
        is_served,
        format!("a service at {endpoint:?}, which FLO_ENDPOINT names"),
    );
    let secrets = TLS.map(|name| {
        let volume = pod.volume(container, folder(variable(name)));
        text(&volume["secret"]["secretName"])
    });
    let is_one = !secrets[0].is_empty() && secrets.iter().all(|secret| *secret == secrets[0]);
    findings.expect(pod.path, is_one, "the certificates of one secret");
    let mut made = cluster.of_kind("Certificate").peekable();
    let is_made =
        made.peek().is_none() || made.any(|(_, it)| it["spec"]["secretName"] == secrets[0]);
    findings.expect(pod.path, is_made, "a secret that is made");
}

/// The addresses of services.
fn endpoints(cluster: &Cluster) -> impl Iterator<Item = String> {
    let services = cluster.of_kind("Service");
    services.flat_map(move |(_, service)| {
        let name = text(&service["metadata"]["name"]);
        let ports = items(&service["spec"]["ports"]);
        ports.map(move |port| format!("{name}.{}.svc:{}", cluster.namespace, port["port"]))
    })
}

/// Whether a policy admits pods with these labels to the client port.
fn is_let_in(cluster: &Cluster, labels: &Value) -> bool {
    let mut policies = cluster.of_kind("NetworkPolicy");
    policies.any(|(_, policy)| {
        items(&policy["spec"]["ingress"]).any(|rule| {
            let is_clients = items(&rule["ports"]).any(|port| port["port"] == "grpc");
            let mut peers = items(&rule["from"]);
            is_clients && peers.any(|peer| selects(&peer["podSelector"]["matchLabels"], labels))
        })
    })
}

/// The directory of a file.
pub(super) fn folder(file: &str) -> &str {
    let folder = Path::new(file).parent().and_then(Path::to_str);
    folder.unwrap_or_default()
}
