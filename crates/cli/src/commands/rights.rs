//! What a credential may do, as commands take it.

use clap::Args;

/// The roles of an API token or of a subject.
#[derive(Debug, Args)]
pub(crate) struct Rights {
    /// Role, such as viewer or editor@shop; repeat it for several. Without @NAMESPACE it holds in the namespace of the
    /// command; with --cluster, roles in namespaces need it
    #[arg(long = "role", value_name = "ROLE[@NAMESPACE]", required = true)]
    pub(crate) roles: Vec<String>,

    /// Approver role, for steps with `approvers: ["role:ROLE"]`; repeat it for several
    #[arg(long, value_name = "ROLE")]
    pub(crate) approves: Vec<String>,
}

impl Rights {
    /// The grants of a credential of the namespace.
    pub(crate) fn grants_in(&self, namespace: &str) -> Vec<String> {
        let roles = self.roles.iter();
        roles.map(|role| grant_in(role, namespace)).collect()
    }
}

/// The namespace that a command means: that of the server if it names none.
pub(crate) fn named_or_default(namespace: &str) -> &str {
    match namespace {
        "" => "default",
        named => named,
    }
}

/// The grant of a role: where none is given, in the namespace.
fn grant_in(role: &str, namespace: &str) -> String {
    if role.contains('@') {
        return role.to_owned();
    }
    let namespace = named_or_default(namespace);
    format!("{role}@{namespace}")
}
