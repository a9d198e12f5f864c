//! What every pod needs, and how its containers start flo.

use super::Findings;
use super::image::{self, Image};
use crate::reference::launch::Launch;
use serde_json::{Value, json};

/// The image of containers that need a shell, which flo's image lacks.
const SHELL: &str = "docker.io/library/busybox:1.37";

/// A pod, as the manifest in a file describes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pod<'a> {
    pub(super) path: &'a str,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) spec: &'a Value,
}

impl<'a> Pod<'a> {
    /// Its containers, including init containers.
    pub(super) fn containers(self) -> impl Iterator<Item = &'a Value> {
        items(&self.spec["initContainers"]).chain(items(&self.spec["containers"]))
    }

    /// The containers of flo.
    pub(super) fn of_flo(self) -> impl Iterator<Item = &'a Value> {
        self.containers()
            .filter(|container| image::is_ours(text(&container["image"])))
    }

    /// Checks that the pod gains no privileges and declares its resources.
    pub(super) fn check(self, image: &Image, findings: &mut Findings) {
        let user: Option<u64> = image.user.parse().ok();
        let context = &self.spec["securityContext"];
        let filter = &context["seccompProfile"]["type"];
        let no_token = self.spec["automountServiceAccountToken"] == false;
        let of_pod = [
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
            (no_token, "no token"),
        ];
        let of_containers = self.containers().flat_map(expectations);
        for (is_so, expectation) in of_pod.into_iter().chain(of_containers) {
            findings.expect(self.path, is_so, expectation);
        }
    }

    /// How a container starts flo: `$(NAME)` stands for a variable.
    pub(super) fn launch(self, container: &Value, image: &Image) -> Launch {
        let mut known: Vec<(String, String)> = Vec::new();
        let expand = |value: &str, known: &[(String, String)]| {
            let replace = |value: String, (name, known): &(String, String)| {
                value.replace(&format!("$({name})"), known)
            };
            known.iter().fold(value.to_owned(), replace)
        };
        for variable in items(&container["env"]) {
            let value = match text(&variable["valueFrom"]["fieldRef"]["fieldPath"]) {
                "metadata.name" => self.name.to_owned(),
                "metadata.namespace" => self.namespace.to_owned(),
                _ => expand(text(&variable["value"]), &known),
            };
            known.push((text(&variable["name"]).to_owned(), value));
        }
        let arguments = items(&container["args"]).map(|word| expand(text(word), &known));
        let arguments = arguments.collect();
        let mut variables = image.variables.clone();
        variables.extend(known);
        Launch {
            arguments,
            variables,
            ..Launch::default()
        }
    }

    /// The volume behind a directory of a container, if any.
    pub(super) fn volume(self, container: &Value, folder: &str) -> &'a Value {
        let mut mounts = items(&container["volumeMounts"]);
        let mount = mounts.find(|mount| mount["mountPath"] == folder);
        let name = mount.map_or("", |mount| text(&mount["name"]));
        let volume = items(&self.spec["volumes"]).find(|volume| volume["name"] == name);
        volume.unwrap_or(&Value::Null)
    }

    /// The claim behind a directory of a container, if any.
    pub(super) fn claim(self, container: &Value, folder: &str) -> &'a str {
        text(&self.volume(container, folder)["persistentVolumeClaim"]["claimName"])
    }
}

/// The requirements of a container.
fn expectations(container: &Value) -> [(bool, &'static str); 6] {
    let image = text(&container["image"]);
    let own = &container["securityContext"];
    let memory = |bound: &str| &container["resources"][bound]["memory"];
    [
        (
            image::is_ours(image) || image == SHELL,
            "the image that the kustomization names",
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
        (memory("requests").is_string(), "memory to be asked for"),
        (memory("limits").is_string(), "memory to be bounded"),
    ]
}

/// The items of a list; empty if it is not a list.
pub(super) fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A text; empty if it is not a text.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether a selector selects what has these labels, and not everything.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    selector.as_object().is_some_and(|selector| {
        let mut wanted = selector.iter();
        !selector.is_empty() && wanted.all(|(name, value)| labels.get(name) == Some(value))
    })
}

/// The value of a flag, given as `--FLAG=VALUE`; an empty one when it is not given.
pub(super) fn flag<'a>(arguments: &'a [String], name: &str) -> &'a str {
    let mut values = arguments.iter().filter_map(|word| {
        let (flag, value) = word.strip_prefix("--")?.split_once('=')?;
        (flag == name).then_some(value)
    });
    values.next().unwrap_or_default()
}
