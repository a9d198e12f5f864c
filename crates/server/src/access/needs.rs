//! What each RPC needs of its caller (X16).

use flotilla_api::{PERMISSIONS, READS};
use flotilla_engine::Permission;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const CREDENTIAL: &str = "credential";
const TASK_TOKEN: &str = "task token";
const OR: &str = " or ";

/// What a call needs of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// Any valid credential suffices.
    Credential,
    /// The token of the task in the request is the proof.
    TaskToken,
    /// One of the permissions.
    Permission(&'static [Permission]),
    /// One of the permissions, to read something. A caller without any grant in the namespace does not learn whether it exists (X24).
    Read(&'static [Permission]),
}

static BY_PATH: LazyLock<BTreeMap<&'static str, Needs>> = LazyLock::new(|| {
    let parsed = PERMISSIONS.iter().map(|(path, text)| {
        let needs = Needs::parse(text).unwrap_or(Needs::NOTHING_SUFFICES);
        let needs = match needs {
            Needs::Permission(permissions) if READS.contains(path) => Needs::Read(permissions),
            needs => needs,
        };
        (*path, needs)
    });
    parsed.collect()
});

impl Needs {
    /// No permission suffices: only a caller of an open cluster that shows no credential passes.
    pub(crate) const NOTHING_SUFFICES: Self = Self::Permission(&[]);

    /// What calls of this path need; `None` if the path is that of no RPC of ours.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        BY_PATH.get(path).copied()
    }

    /// Whether what the call does lies in no namespace.
    pub(crate) fn is_of_cluster(self) -> bool {
        match self {
            Self::Credential | Self::TaskToken => false,
            Self::Permission(permissions) | Self::Read(permissions) => {
                permissions.iter().any(|one| one.is_of_cluster())
            }
        }
    }

    /// Whether a response may have payloads that the caller may not read (X17).
    pub(crate) fn may_redact(self) -> bool {
        match self {
            Self::Credential | Self::TaskToken => false,
            Self::Permission(permissions) | Self::Read(permissions) => {
                permissions.contains(&Permission::RunRead)
            }
        }
    }

    /// As the protocol files write it.
    pub(crate) fn text(self) -> String {
        match self {
            Self::Credential => CREDENTIAL.to_owned(),
            Self::TaskToken => TASK_TOKEN.to_owned(),
            Self::Permission(permissions) | Self::Read(permissions) => {
                let names: Vec<&str> = permissions.iter().map(|one| one.as_str()).collect();
                names.join(OR)
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text {
            CREDENTIAL => return Some(Self::Credential),
            TASK_TOKEN => return Some(Self::TaskToken),
            _ => {}
        }
        let permissions: Option<Vec<Permission>> =
            text.split(OR).map(Permission::from_name).collect();
        // Once for each RPC, for the life of the process.
        Some(Self::Permission(permissions?.leak()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_api::descriptors::has_option;
    use flotilla_api::json::DESCRIPTORS;
    use flotilla_engine::NamespaceRole;
    use prost_reflect::{ExtensionDescriptor, Kind, MessageDescriptor};
    use std::collections::BTreeSet;

    /// Whether the message may have payloads.
    fn has_payload(
        option: &ExtensionDescriptor,
        message: &MessageDescriptor,
        seen: &mut BTreeSet<String>,
    ) -> bool {
        seen.insert(message.full_name().to_owned())
            && message.fields().any(|field| {
                let is_payload = has_option(&field, option, "payload");
                match field.kind() {
                    Kind::Message(inner) => is_payload || has_payload(option, &inner, seen),
                    _ => is_payload,
                }
            })
    }

    #[test]
    fn only_calls_that_read_runs_may_have_to_hide_payloads() {
        let option = DESCRIPTORS.get_extension_by_name("flotilla.rest.field");
        let option = option.expect("it is defined");
        let mut shown_count = 0;
        for service in DESCRIPTORS.services() {
            for method in service.methods() {
                if !has_payload(&option, &method.output(), &mut BTreeSet::new()) {
                    continue;
                }
                let path = format!("/{}/{}", service.full_name(), method.name());
                let needs = Needs::of_path(&path).expect("an RPC");
                let (Needs::Permission(permissions) | Needs::Read(permissions)) = needs else {
                    panic!("{path} shows payloads to any caller");
                };
                let mut roles = NamespaceRole::ALL.iter().map(|role| role.permissions());
                let is_hidden = roles.all(|role| {
                    let may_call = permissions.iter().any(|one| role.has(*one));
                    !may_call || needs.may_redact() || role.has(Permission::RunPayloads)
                });
                assert!(is_hidden, "{path}");
                shown_count += 1;
            }
        }
        assert!(shown_count > 8, "{shown_count}");
    }

    #[test]
    fn the_annotation_of_every_rpc_is_understood() {
        assert!(PERMISSIONS.len() > 80, "{}", PERMISSIONS.len());
        for (path, text) in PERMISSIONS {
            assert!(Needs::parse(text).is_some(), "{path}: {text}");
        }
    }

    #[test]
    fn a_path_leads_to_what_its_calls_need() {
        let of = |path| Needs::of_path(path);
        let read = Needs::Read(&[Permission::KvRead]);
        assert_eq!(of("/flotilla.v1.KvService/GetKey"), Some(read));
        let write = Needs::Permission(&[Permission::KvWrite]);
        assert_eq!(of("/flotilla.v1.KvService/SetKey"), Some(write));
        // A watch is refused as a write is (X24).
        let watch = Needs::Permission(&[Permission::RunRead]);
        assert_eq!(of("/flotilla.v1.WorkflowService/WatchRun"), Some(watch));
        assert_eq!(of("/flotilla.v1.KvService/getkey"), None);
        let form = of("/flotilla.v1.ClusterService/FormCluster").expect("an RPC");
        assert!(form.is_of_cluster() && !read.is_of_cluster());
    }
}
