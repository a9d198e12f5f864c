//! Scheduled jobs: online backups, and checks that they can be restored.

use super::Findings;
use super::containers::{Pod, items, selects, text};
use super::image::Image;
use super::kubernetes::Cluster;
use crate::reference::launch::Launch;
use serde_json::Value;
use std::path::Path;

/// The certificate, key and authority that `flo` uses.
const TLS: [&str; 3] = ["FLO_TLS_CERT", "FLO_TLS_KEY", "FLO_TLS_CA"];

/// The command that checks a backup.
const RESTORE: [&str; 2] = ["cluster", "restore"];

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
                if call
                    .launch
                    .arguments
                    .starts_with(&RESTORE.map(str::to_owned))
                {
                    check_restore(&call, cluster, findings);
                    continue;
                }
                let is_let_in = is_let_in(cluster, &template["metadata"]["labels"]);
                findings.expect(path, is_let_in, "the network policy to let it in");
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
    check_claimed(call, file, cluster, findings);
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

/// Checks that a file is on an existing claim.
fn check_claimed(call: &Call<'_>, file: &str, cluster: &Cluster, findings: &mut Findings) {
    let claim = call.pod.claim(call.container, folder(file));
    let mut claims = cluster.of_kind("PersistentVolumeClaim");
    let is_claimed = claims.any(|(_, it)| it["metadata"]["name"] == claim);
    let path = call.pod.path;
    findings.expect(path, is_claimed, format!("{file} to be on a claim"));
}

/// Checks that a backup is restored from an existing claim to a scratch directory.
fn check_restore(call: &Call<'_>, cluster: &Cluster, findings: &mut Findings) {
    let Call {
        pod,
        container,
        launch,
    } = call;
    let [_, _, file, data_dir] = &launch.arguments[..] else {
        return findings.push(
            pod.path,
            "expected `flo cluster restore FILE --data-dir=DIR`",
        );
    };
    check_claimed(call, file, cluster, findings);
    let data_dir = data_dir.strip_prefix("--data-dir=").unwrap_or_default();
    let volume = pod.volume(container, folder(data_dir));
    let is_scratch = volume["emptyDir"].is_object();
    findings.expect(
        pod.path,
        is_scratch,
        format!("{data_dir} in a scratch volume"),
    );
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
