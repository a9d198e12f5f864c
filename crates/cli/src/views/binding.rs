//! The rights of a subject, and its block.

use crate::output::Row;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// The rights of a subject in a namespace, or in the cluster.
#[derive(Debug, Serialize)]
pub(crate) struct BindingView {
    subject: String,
    /// `None` for a binding of the cluster.
    namespace: Option<String>,
    grants: Vec<String>,
    approves: Vec<String>,
    changed_at_ms: u64,
    changed_by: Option<String>,
}

/// The block of a subject.
#[derive(Debug, Serialize)]
pub(crate) struct BlockView {
    subject: String,
    blocked_at_ms: u64,
    blocked_by: Option<String>,
    ends_at_ms: Option<u64>,
}

/// What a client certificate or the token of an issuer proves, and the rights that it gives.
#[derive(Debug, Serialize)]
pub(crate) struct SubjectView {
    subject: String,
    identity: String,
    groups: Vec<String>,
    expires_at_ms: u64,
    bindings: Vec<BindingView>,
}

impl From<v1::Binding> for BindingView {
    fn from(binding: v1::Binding) -> Self {
        Self {
            subject: binding.subject,
            namespace: Some(binding.namespace).filter(|namespace| !namespace.is_empty()),
            grants: binding.grants,
            approves: binding.approves,
            changed_at_ms: binding.changed_at_ms,
            changed_by: binding.changed_by,
        }
    }
}

impl From<v1::Block> for BlockView {
    fn from(block: v1::Block) -> Self {
        Self {
            subject: block.subject,
            blocked_at_ms: block.blocked_at_ms,
            blocked_by: block.blocked_by,
            ends_at_ms: block.ends_at_ms,
        }
    }
}

impl From<v1::ProvenSubject> for SubjectView {
    fn from(proven: v1::ProvenSubject) -> Self {
        Self {
            subject: proven.subject,
            identity: proven.identity,
            groups: proven.groups,
            expires_at_ms: proven.expires_at_ms,
            bindings: proven.bindings.into_iter().map(BindingView::from).collect(),
        }
    }
}

impl SubjectView {
    /// The subject for people, a line for each property.
    pub(crate) fn text(&self) -> String {
        let grants: Vec<String> = self.bindings.iter().map(BindingView::text).collect();
        let grants = match grants.is_empty() {
            true => "none: an administrator gives them with `flo auth bind`".to_owned(),
            false => grants.join("\n          "),
        };
        let groups = match self.groups.is_empty() {
            true => String::new(),
            false => format!("\ngroups    {}", self.groups.join("\n          ")),
        };
        format!(
            "subject   {}\nidentity  {}{groups}\ngrants    {grants}\nends      {}",
            self.subject,
            self.identity,
            time::show(self.expires_at_ms),
        )
    }
}

impl BindingView {
    fn text(&self) -> String {
        let scope = match &self.namespace {
            Some(namespace) => format!("from namespace {namespace}"),
            None => "from the cluster".to_owned(),
        };
        let approves = match self.approves.as_slice() {
            [] => String::new(),
            roles => format!(", approves {}", roles.join(", ")),
        };
        format!("{} {scope}{approves}", self.grants.join(" "))
    }
}

impl Row for BindingView {
    const HEADINGS: &'static [&'static str] = &["SUBJECT", "GRANTS", "APPROVES", "CHANGED"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.subject.clone(),
            self.grants.join(" "),
            self.approves.join(" "),
            time::show(self.changed_at_ms),
        ]
    }
}

impl Row for BlockView {
    const HEADINGS: &'static [&'static str] = &["SUBJECT", "BLOCKED", "ENDS"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.subject.clone(),
            time::show(self.blocked_at_ms),
            self.ends_at_ms
                .map_or_else(|| "never".to_owned(), time::show),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_shown_with_its_rights() {
        let mut proven = v1::ProvenSubject {
            subject: "cert:dns:till".to_owned(),
            identity: "service:cert:dns:till".to_owned(),
            expires_at_ms: 0,
            bindings: Vec::new(),
            groups: Vec::new(),
        };
        let text = SubjectView::from(proven.clone()).text();
        assert!(text.contains("grants    none"), "{text}");
        proven.bindings = vec![
            v1::Binding {
                grants: vec!["cluster-viewer".to_owned()],
                ..v1::Binding::default()
            },
            v1::Binding {
                namespace: "shop".to_owned(),
                grants: vec!["worker@shop".to_owned(), "viewer@shop".to_owned()],
                approves: vec!["editors".to_owned()],
                ..v1::Binding::default()
            },
        ];
        proven.groups = vec![
            "oidc:corp:group:a".to_owned(),
            "oidc:corp:group:b".to_owned(),
        ];
        let text = SubjectView::from(proven).text();
        let expected = "subject   cert:dns:till\n\
                        identity  service:cert:dns:till\n\
                        groups    oidc:corp:group:a\n          \
                        oidc:corp:group:b\n\
                        grants    cluster-viewer from the cluster\n          \
                        worker@shop viewer@shop from namespace shop, approves editors\n\
                        ends      1970-01-01T00:00:00.000Z";
        assert_eq!(text, expected);
    }
}
