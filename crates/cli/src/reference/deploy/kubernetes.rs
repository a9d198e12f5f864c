//! The Kubernetes manifests: the results of all kustomizations, each of which must have the shape
//! of its kind.

use super::Findings;
use super::containers::{items, text};
use super::files::{Files, beside};
use super::image::{self, Image};
use super::{jobs, pods, rescue, shape};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) const FOLDER: &str = "deploy/kubernetes/";
/// The base of every cluster.
const BASE: &str = "deploy/kubernetes/base";
/// Components that may be added to it, in any combination.
const COMPONENTS: &str = "deploy/kubernetes/components/";
const KUSTOMIZATION: &str = "kustomization.yaml";

/// The result of a kustomization's files, its bases and its components.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster {
    /// The kustomization.
    pub(super) path: String,
    /// Each manifest with its file.
    pub(super) manifests: Vec<(String, Value)>,
    /// Generated config maps: name → key → the file with the text.
    pub(super) maps: BTreeMap<String, BTreeMap<String, String>>,
    /// The number of nodes, if a kustomization sets it.
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

/// Checks every kustomization, all combinations of components with the base, and the manifests
/// applied by hand.
pub(super) fn check(files: &Files, image: &Image, findings: &mut Findings) {
    let ours = files.paths().filter(|path| path.starts_with(FOLDER));
    let ours: Vec<&str> = ours
        .filter(|path| !path.starts_with(rescue::FOLDER))
        .collect();
    let folders = ours
        .iter()
        .filter_map(|path| path.strip_suffix(KUSTOMIZATION)?.strip_suffix('/'));
    let (components, whole): (Vec<&str>, Vec<&str>) =
        folders.partition(|folder| folder.starts_with(COMPONENTS));
    let are_there = components.len() > 2 && whole.len() > 1;
    findings.expect(FOLDER, are_there, "a base, components and an example");
    let mut named = Vec::new();
    for folder in whole {
        named.extend(check_folder(folder, files, image, findings));
    }
    for (folder, text) in compositions(&components) {
        let files = files.with(&format!("{folder}/{KUSTOMIZATION}"), &text);
        named.extend(check_folder(&folder, &files, image, findings));
    }
    for path in ours.iter().filter(|path| !path.ends_with(KUSTOMIZATION)) {
        let is_named = named.iter().any(|named| named == path);
        findings.expect(path, is_named, "a file that a kustomization names");
    }
    let base = read(BASE, Cluster::default(), files, findings);
    rescue::check(&base, files, image, findings);
}

/// Kustomizations as people write them, each with its folder: every component alone, and all of
/// them in both orders.
fn compositions(components: &[&str]) -> Vec<(String, String)> {
    let names = components.iter();
    let names: Vec<&str> = names
        .filter_map(|component| component.strip_prefix(COMPONENTS))
        .collect();
    let alone = names.iter().map(|name| vec![*name]);
    let all = [names.clone(), names.iter().rev().copied().collect()];
    let composition = |names: Vec<&str>| {
        let folder = format!("{FOLDER}base+{}", names.join("+"));
        let list: String = names
            .iter()
            .map(|name| format!("  - ../components/{name}\n"))
            .collect();
        let text = format!(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: flotilla\n\
             resources:\n  - ../base\ncomponents:\n{list}"
        );
        (folder, text)
    };
    alone.chain(all).map(composition).collect()
}

/// Checks what a folder deploys, and returns the files that it uses.
fn check_folder(
    folder: &str,
    files: &Files,
    image: &Image,
    findings: &mut Findings,
) -> Vec<String> {
    let cluster = read(folder, Cluster::default(), files, findings);
    let name = |manifest: &Value| {
        let name = text(&manifest["metadata"]["name"]);
        format!("{} {name}", text(&manifest["kind"]))
    };
    for (position, (path, manifest)) in cluster.manifests.iter().enumerate() {
        let mut before = cluster.manifests[..position].iter();
        let is_once = before.all(|(_, other)| name(other) != name(manifest));
        let expectation = format!("{} once in {folder}", name(manifest));
        findings.expect(path, is_once, expectation);
    }
    pods::check(&cluster, files, image, findings);
    jobs::check(&cluster, image, findings);
    let maps = cluster.maps.into_values().flat_map(BTreeMap::into_values);
    let manifests = cluster.manifests.into_iter().map(|(path, _)| path);
    manifests.chain(maps).collect()
}

/// Reads a folder and its bases. A component changes what exists, the `cluster`.
fn read(folder: &str, mut cluster: Cluster, files: &Files, findings: &mut Findings) -> Cluster {
    let path = format!("{folder}/{KUSTOMIZATION}");
    let kustomization = match files.documents(&path) {
        Ok(documents) => documents.into_iter().next().unwrap_or_default(),
        Err(error) => {
            findings.push(&path, error);
            return cluster;
        }
    };
    check_shape(&path, &kustomization, findings);
    let kind = match folder.starts_with(COMPONENTS) {
        true => "Component",
        false => "Kustomization",
    };
    findings.expect(&path, kustomization["kind"] == kind, format!("a {kind}"));
    for resource in items(&kustomization["resources"]) {
        let resource = beside(folder, text(resource));
        if files.has(&format!("{resource}/{KUSTOMIZATION}")) {
            let below = read(&resource, Cluster::default(), files, findings);
            cluster.manifests.extend(below.manifests);
            cluster.maps.extend(below.maps);
            cluster.replicas = below.replicas.or(cluster.replicas);
        } else if files.has(&resource) {
            push_manifests(&resource, files, &mut cluster, findings);
        } else {
            let finding = format!("expected {resource}, but there is no such file");
            findings.push(&path, finding);
        }
    }
    for generator in items(&kustomization["configMapGenerator"]) {
        // Otherwise a changed file would change the map's name and restart every node.
        let is_stable = kustomization["generatorOptions"]["disableNameSuffixHash"] == true;
        findings.expect(&path, is_stable, "disableNameSuffixHash");
        let generator = Generator {
            path: &path,
            value: generator,
        };
        generator.push_map(files, &mut cluster, findings);
    }
    for component in items(&kustomization["components"]) {
        let component = beside(folder, text(component));
        cluster = read(&component, cluster, files, findings);
    }
    for entry in items(&kustomization["images"]) {
        let is_ours = entry["name"] == image::NAME && entry["newTag"] == image::version();
        let expected = format!("{}:{}", image::NAME, image::version());
        findings.expect(&path, is_ours, expected);
        name_images(entry, &mut cluster);
    }
    let count = kustomization.pointer("/replicas/0/count");
    cluster.replicas = count.and_then(Value::as_u64).or(cluster.replicas);
    cluster.namespace = text(&kustomization["namespace"]).to_owned();
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

/// A generator of config maps.
struct Generator<'a> {
    /// The kustomization that it is in.
    path: &'a str,
    value: &'a Value,
}

impl Generator<'_> {
    /// Adds its files to the config map that it names.
    fn push_map(&self, files: &Files, cluster: &mut Cluster, findings: &mut Findings) {
        let Self { path, value } = *self;
        let folder = path.strip_suffix(KUSTOMIZATION).unwrap_or_default();
        let name = text(&value["name"]);
        let is_merged = value["behavior"] == "merge";
        let is_known = cluster.maps.contains_key(name) == is_merged;
        findings.expect(path, is_known, format!("{name} to be made once"));
        let map = cluster.maps.entry(name.to_owned()).or_default();
        for file in items(&value["files"]) {
            let file = beside(folder, text(file));
            findings.expect(path, files.has(&file), format!("{file} to be there"));
            let key = file.rsplit('/').next().unwrap_or_default();
            let is_new = map.insert(key.to_owned(), file.clone()).is_none();
            findings.expect(path, is_new, format!("{key} to be given once"));
        }
    }
}

/// Applies a kustomization's image names and tags.
fn name_images(entry: &Value, cluster: &mut Cluster) {
    let rename = |image: &str| {
        let (name, tag) = image.rsplit_once(':').unwrap_or((image, ""));
        if text(&entry["name"]) != name {
            return image.to_owned();
        }
        let name = entry["newName"].as_str().unwrap_or(name);
        let tag = entry["newTag"].as_str().unwrap_or(tag);
        format!("{name}:{tag}")
    };
    let mut open: Vec<&mut Value> = cluster.manifests.iter_mut().map(|(_, it)| it).collect();
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter_mut()),
            Value::Object(fields) => {
                for (key, field) in fields.iter_mut() {
                    match field {
                        Value::String(image) if key == "image" => *image = rename(image.as_str()),
                        field => open.push(field),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Checks that a manifest has the shape of its kind.
pub(super) fn check_shape(path: &str, manifest: &Value, findings: &mut Findings) {
    for mismatch in shape::mismatches(text(&manifest["kind"]), manifest) {
        findings.push(path, mismatch);
    }
}
