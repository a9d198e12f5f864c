//! Manifests that are applied by hand while nodes are stopped: backup and restore of a pod's
//! volume, and access to the files.

use super::Findings;
use super::containers::{Pod, flag, items, text};
use super::files::Files;
use super::image::Image;
use super::jobs::folder;
use super::kubernetes::{self, Cluster};
use super::pods;
use serde_json::Value;

pub(super) const FOLDER: &str = "deploy/kubernetes/rescue/";
/// The claim of the scheduled backups, and the job that fills it.
const CLAIM: &str = "deploy/kubernetes/components/backups/claim.yaml";
const CRON_JOB: &str = "deploy/kubernetes/components/backups/cron-job.yaml";
/// The example pod, as an ordinal of the stateful set.
const POD: &str = "flotilla-0";

/// What the files are checked against.
struct Rescue<'a> {
    base: &'a Cluster,
    files: &'a Files,
    image: &'a Image,
    /// The claims that the manifests create.
    claims: Vec<Value>,
}

/// Checks each file against what the base deploys.
pub(super) fn check(base: &Cluster, files: &Files, image: &Image, findings: &mut Findings) {
    let ours = files.paths().filter(|path| path.starts_with(FOLDER));
    let ours: Vec<&str> = ours.collect();
    findings.expect(FOLDER, ours.len() > 2, "a backup, restoring it, and files");
    let claims = ours.iter().chain([&CLAIM]);
    let claims = claims.flat_map(|path| files.documents(path).unwrap_or_default());
    let rescue = Rescue {
        base,
        files,
        image,
        claims: claims
            .filter(|manifest| manifest["kind"] == "PersistentVolumeClaim")
            .collect(),
    };
    for path in ours {
        match files.documents(path) {
            Ok(manifests) => {
                for manifest in manifests {
                    kubernetes::check_shape(path, &manifest, findings);
                    rescue.check_manifest(path, &manifest, findings);
                }
            }
            Err(error) => findings.push(path, error),
        }
    }
}

impl Rescue<'_> {
    fn check_manifest(&self, path: &str, manifest: &Value, findings: &mut Findings) {
        let namespace = text(&manifest["metadata"]["namespace"]);
        let is_ours = namespace == self.base.namespace;
        findings.expect(path, is_ours, "the namespace of the nodes");
        let spec = match text(&manifest["kind"]) {
            "Job" => &manifest["spec"]["template"]["spec"],
            "Pod" => &manifest["spec"],
            _ => return,
        };
        let pod = Pod {
            path,
            name: text(&manifest["metadata"]["name"]),
            namespace,
            spec,
        };
        pod.check(self.image, findings);
        for volume in items(&spec["volumes"]) {
            let claim = text(&volume["persistentVolumeClaim"]["claimName"]);
            let is_known = self.claim(claim).is_some() || claim == self.data_claim();
            findings.expect(path, is_known, format!("a claim {claim:?}"));
        }
        for container in pod.of_flo() {
            self.check_call(pod, container, findings);
        }
    }

    fn claim(&self, name: &str) -> Option<&Value> {
        let mut claims = self.claims.iter();
        claims.find(|claim| claim["metadata"]["name"] == name)
    }

    /// The claim template of the stateful set.
    fn template(&self) -> Value {
        let set = self.base.of_kind("StatefulSet").next();
        set.map_or(Value::Null, |(_, set)| {
            set["spec"]["volumeClaimTemplates"][0].clone()
        })
    }

    /// The name of the claim that the stateful set creates for the pod.
    fn data_claim(&self) -> String {
        format!("{}-{POD}", text(&self.template()["metadata"]["name"]))
    }

    /// A call works on the pod's volume at the image's data directory, and on a file of another
    /// claim.
    fn check_call(&self, pod: Pod<'_>, container: &Value, findings: &mut Findings) {
        let launch = pod.launch(container, self.image);
        if let Err(error) = launch.check() {
            findings.push(pod.path, error);
        }
        let arguments = &launch.arguments[..];
        let [_, verb, file, ..] = arguments else {
            return findings.push(pod.path, "expected `flo cluster VERB FILE`");
        };
        let data = flag(arguments, "data-dir");
        let own = self.image.variables.get("FLO_DATA_DIR");
        let is_data =
            own.is_some_and(|own| own == data) && pod.claim(container, data) == self.data_claim();
        findings.expect(pod.path, is_data, format!("the data of {POD} at {data:?}"));
        let is_kept = self.claim(pod.claim(container, folder(file))).is_some();
        findings.expect(pod.path, is_kept, format!("{file} to be on a claim"));
        if verb == "restore" {
            self.check_restore(pod.path, arguments, findings);
        }
    }

    /// Checks that a restore makes the pod's node, on an equal claim, from an existing file.
    fn check_restore(&self, path: &str, arguments: &[String], findings: &mut Findings) {
        let is_written = self.files.text(CRON_JOB).contains(&arguments[2]);
        findings.expect(path, is_written, format!("{} to be written", arguments[2]));
        let claim = self.claim(&self.data_claim());
        let is_alike = claim.is_some_and(|claim| claim["spec"] == self.template()["spec"]);
        findings.expect(path, is_alike, "a claim as the stateful set makes it");
        let nodes = pods::nodes(self.base, self.files, self.image, findings);
        let Some(node) = nodes.get(POD) else {
            return findings.push(path, format!("expected a node {POD}"));
        };
        let mut peers = node.peers.iter();
        let own = peers.find(|peer| peer.node_id == node.node_id);
        let is_node = flag(arguments, "node-id") == node.node_id.to_string()
            && own.is_some_and(|own| own.address == flag(arguments, "peer-address"))
            && node.advertise.as_deref() == Some(flag(arguments, "advertise"));
        findings.expect(path, is_node, format!("the id and the addresses of {POD}"));
    }
}
