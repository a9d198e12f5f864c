//! Roles: named sets of permissions (X17).

use super::permission::{Permission, PermissionSet};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Defines an enum of roles from the table: name, published name, permissions.
macro_rules! roles {
    ($(#[$doc:meta])* $type:ident: $($(#[$role_doc:meta])* $name:ident $spelling:literal $permissions:expr;)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum $type {
            $($(#[$role_doc])* $name,)*
        }

        impl $type {
            /// All roles, in the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $spelling,)*
                }
            }

            /// What the role permits.
            #[must_use]
            pub const fn permissions(self) -> PermissionSet {
                match self {
                    $(Self::$name => $permissions,)*
                }
            }

            /// The role with this published name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|role| role.as_str() == name)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.as_str())
            }
        }
    };
}

const VIEWER: PermissionSet = PermissionSet::of(&[
    Permission::WorkflowRead,
    Permission::ActionRead,
    Permission::WorkerRead,
    Permission::StreamRead,
    Permission::RunRead,
    Permission::QuotaRead,
]);
const READER: PermissionSet = VIEWER.and(&[Permission::RunPayloads, Permission::KvRead]);
const OPERATOR: PermissionSet = READER.and(&[
    Permission::RunStart,
    Permission::RunControl,
    Permission::RunApprove,
    Permission::ActionInvoke,
    Permission::DeadLetterWrite,
    Permission::WorkflowToggle,
    Permission::PlanReset,
    Permission::CacheWrite,
    Permission::StreamAppend,
    Permission::KvWrite,
    Permission::WorkerControl,
]);
const EDITOR: PermissionSet = OPERATOR.and(&[
    Permission::WorkflowWrite,
    Permission::ActionWrite,
    Permission::StreamWrite,
]);
const ADMIN: PermissionSet = EDITOR.and(&[
    Permission::TokenWrite,
    Permission::IdentityAssign,
    Permission::NamespaceCreate,
    Permission::NamespacePurge,
]);

roles! {
    /// A role in namespaces.
    NamespaceRole:
    /// Reads everything but payloads of runs and keys.
    Viewer "viewer" VIEWER;
    /// Reads everything.
    Reader "reader" READER;
    /// Starts and controls runs, besides reading.
    Operator "operator" OPERATOR;
    /// Writes definitions, actions and streams, besides what an operator does.
    Editor "editor" EDITOR;
    /// Works on tasks and records, and nothing else.
    Worker "worker" PermissionSet::of(&[Permission::TaskWork, Permission::ActionRegisterMissing]);
    /// Grants access to the namespace, besides what an editor does.
    Admin "admin" ADMIN;
}

roles! {
    /// A role in the cluster as a whole.
    ClusterRole:
    /// Reads the state of the cluster and its metrics.
    ClusterViewer "cluster-viewer" PermissionSet::of(&[Permission::ClusterRead, Permission::QuotaRead]);
    /// Makes backups.
    Backup "backup" PermissionSet::of(&[Permission::ClusterBackup]);
    /// Operates the cluster, but reads no namespace.
    ClusterOperator "cluster-operator" PermissionSet::of(&[
        Permission::ClusterRead,
        Permission::ClusterBackup,
        Permission::ClusterOperate,
        Permission::QuotaRead,
    ]);
    /// Does everything, in all namespaces.
    ClusterAdmin "cluster-admin" PermissionSet::ALL;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_does_not_write_definitions_and_an_editor_does_not_work() {
        let has = |role: NamespaceRole, permission| role.permissions().has(permission);
        assert!(has(NamespaceRole::Operator, Permission::RunStart));
        assert!(!has(NamespaceRole::Operator, Permission::WorkflowWrite));
        assert!(has(NamespaceRole::Editor, Permission::WorkflowWrite));
        assert!(!has(NamespaceRole::Admin, Permission::TaskWork));
        assert!(!has(NamespaceRole::Viewer, Permission::RunPayloads));
    }

    #[test]
    fn only_the_cluster_administrator_grants_access_to_the_cluster() {
        for role in ClusterRole::ALL {
            let is_admin = *role == ClusterRole::ClusterAdmin;
            assert_eq!(role.permissions().has(Permission::AccessWrite), is_admin);
        }
        for role in NamespaceRole::ALL {
            assert!(!role.permissions().has(Permission::AccessWrite), "{role}");
            assert!(!role.permissions().has(Permission::ClusterRead), "{role}");
        }
    }

    #[test]
    fn a_role_is_found_by_its_name() {
        for role in NamespaceRole::ALL {
            assert_eq!(NamespaceRole::from_name(role.as_str()), Some(*role));
        }
        assert_eq!(ClusterRole::from_name("admin"), None);
    }
}
