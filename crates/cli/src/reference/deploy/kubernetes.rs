//! The manifests of Kubernetes: which there are, and that each has the shape of its kind.

use super::Findings;
use super::files::{Files, beside};
use super::image::{self, Image};
use super::pods;
use super::shape;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const FOLDER: &str = "deploy/kubernetes/";
const KUSTOMIZATION: &str = "kustomization.yaml";

/// What a folder makes of its own files and of those that it builds on.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// The kustomization.
    pub(super) path: String,
    /// Each manifest with its file.
    pub(super) manifests: Vec<(String, Value)>,
    /// Generated maps: name → key → the file that its text comes from.
    pub(super) maps: BTreeMap<String, BTreeMap<String, String>>,
    /// How many nodes, where the kustomization says so.
    pub(super) replicas: Option<u64>,
    pub(super) namespace: String,
}

impl Cluster {
    /// The manifests of a kind, with their files.
    pub(super) fn of_kind(&self, kind: &str) -> impl Iterator<Item = (&str, &Value)> {
        let of_kind = self
            .manifests
            .iter()
            .filter(move |(_, it)| it["kind"] == kind);
        of_kind.map(|(path, manifest)| (path.as_str(), manifest))
    }
}

/// Checks every folder with a kustomization.
pub(super) fn check(files: &Files, image: &Image, findings: &mut Findings) {
    let ours = files.paths().filter(|path| path.starts_with(FOLDER));
    let ours: Vec<&str> = ours.collect();
    let folders: Vec<&str> = ours
        .iter()
        .filter_map(|path| path.strip_suffix(KUSTOMIZATION)?.strip_suffix('/'))
        .collect();
    let mut named = Vec::new();
    for folder in &folders {
        let cluster = read(folder, files, findings);
        named.extend(cluster.manifests.iter().map(|(path, _)| path.clone()));
        named.extend(cluster.maps.values().flat_map(BTreeMap::values).cloned());
        pods::check(&cluster, files, image, findings);
    }
    for path in ours.iter().filter(|path| !path.ends_with(KUSTOMIZATION)) {
        let is_named = named.iter().any(|named| named == path);
        findings.expect(path, is_named, "a file that a kustomization names");
    }
    findings.expect(FOLDER, folders.len() > 2, "a base and overlays");
}

/// Reads a folder, and what it builds on.
fn read(folder: &str, files: &Files, findings: &mut Findings) -> Cluster {
    let path = format!("{folder}/{KUSTOMIZATION}");
    let kustomization = match files.documents(&path) {
        Ok(documents) => documents.into_iter().next().unwrap_or_default(),
        Err(error) => {
            findings.push(&path, error);
            return Cluster::default();
        }
    };
    check_shape(&path, &kustomization, findings);
    let mut cluster = Cluster::default();
    for resource in kustomization["resources"].as_array().into_iter().flatten() {
        let resource = beside(folder, resource.as_str().unwrap_or_default());
        if files.has(&format!("{resource}/{KUSTOMIZATION}")) {
            cluster = read(&resource, files, findings);
        } else if files.has(&resource) {
            push_manifests(&resource, files, &mut cluster, findings);
        } else {
            findings.push(
                &path,
                format!("expected {resource}, but there is no such file"),
            );
        }
    }
    push_maps(&path, &kustomization, files, &mut cluster, findings);
    for tag in kustomization["images"].as_array().into_iter().flatten() {
        let is_ours = tag["name"] == image::NAME && tag["newTag"] == image::version();
        findings.expect(
            &path,
            is_ours,
            format!("{}:{}", image::NAME, image::version()),
        );
    }
    let count = kustomization
        .pointer("/replicas/0/count")
        .and_then(Value::as_u64);
    cluster.replicas = count.or(cluster.replicas);
    cluster.namespace = kustomization["namespace"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    cluster.path = path;
    cluster
}

fn push_manifests(path: &str, files: &Files, cluster: &mut Cluster, findings: &mut Findings) {
    match files.documents(path) {
        Ok(documents) => {
            for manifest in documents {
                check_shape(path, &manifest, findings);
                cluster.manifests.push((path.to_owned(), manifest));
            }
        }
        Err(error) => findings.push(path, error),
    }
}

fn push_maps(
    path: &str,
    kustomization: &Value,
    files: &Files,
    cluster: &mut Cluster,
    findings: &mut Findings,
) {
    let folder = path.strip_suffix(KUSTOMIZATION).unwrap_or_default();
    let generators = kustomization["configMapGenerator"].as_array();
    for generator in generators.into_iter().flatten() {
        let name = generator["name"].as_str().unwrap_or_default();
        let map = cluster.maps.entry(name.to_owned()).or_default();
        for file in generator["files"].as_array().into_iter().flatten() {
            let file = beside(folder, file.as_str().unwrap_or_default());
            findings.expect(path, files.has(&file), format!("{file} to be there"));
            let key = file.rsplit('/').next().unwrap_or_default();
            map.insert(key.to_owned(), file.clone());
        }
        // Else a changed file would have another name, and restart every node.
        let is_stable = kustomization["generatorOptions"]["disableNameSuffixHash"] == true;
        findings.expect(path, is_stable, "disableNameSuffixHash");
    }
}

fn check_shape(path: &str, manifest: &Value, findings: &mut Findings) {
    let kind = manifest["kind"].as_str().unwrap_or_default();
    for mismatch in shape::mismatches(kind, manifest) {
        findings.push(path, mismatch);
    }
}
