//! Permissions: what a caller must be allowed to do for each command and read (X16, X17).

use std::fmt;

/// Defines [`Permission`] from the table: name, published name.
macro_rules! permissions {
    ($($(#[$doc:meta])* $name:ident $spelling:literal;)*) => {
        /// The right to make certain calls.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum Permission {
            $($(#[$doc])* $name,)*
        }

        impl Permission {
            /// All permissions, in the order of their discriminants.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published name.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $spelling,)*
                }
            }
        }
    };
}

permissions! {
    /// Reads definitions, plans and schedules.
    WorkflowRead "workflow.read";
    /// Validates, creates and deletes definitions.
    WorkflowWrite "workflow.write";
    /// Enables and disables workflows.
    WorkflowToggle "workflow.toggle";
    /// Resets plans.
    PlanReset "plan.reset";
    /// Drops cached results.
    CacheWrite "cache.write";
    /// Reads runs and action runs, with their history and dead letters, but without payloads.
    RunRead "run.read";
    /// Reads the payloads of what `run.read` shows.
    RunPayloads "run.payloads";
    /// Starts runs.
    RunStart "run.start";
    /// Signals, cancels, resumes and retries runs, completes their steps and adds info.
    RunControl "run.control";
    /// Decides approvals.
    RunApprove "run.approve";
    /// Reads actions.
    ActionRead "action.read";
    /// Registers, changes and deletes actions.
    ActionWrite "action.write";
    /// Registers actions that do not exist.
    ActionRegisterMissing "action.register_missing";
    /// Starts stand-alone action runs.
    ActionInvoke "action.invoke";
    /// Requeues and purges dead letters.
    DeadLetterWrite "dlq.write";
    /// Reads workers.
    WorkerRead "worker.read";
    /// Drains and deregisters workers of others.
    WorkerControl "worker.control";
    /// Works: registers as a worker, takes tasks and records, and reports their outcome.
    TaskWork "task.work";
    /// Reads streams, records and consumer groups.
    StreamRead "stream.read";
    /// Creates, trims and deletes streams and consumer groups.
    StreamWrite "stream.write";
    /// Appends records.
    StreamAppend "stream.append";
    /// Reads keys.
    KvRead "kv.read";
    /// Sets and deletes keys.
    KvWrite "kv.write";
    /// Creates, rotates, revokes and lists API tokens.
    TokenWrite "token.write";
    /// Lets a credential act for another identity.
    IdentityAssign "identity.assign";
    /// Creates namespaces.
    NamespaceCreate "namespace.create";
    /// Deletes namespaces.
    NamespacePurge "namespace.purge";
    /// Reads quotas and what is used of them.
    QuotaRead "quota.read";
    /// Changes quotas.
    QuotaWrite "quota.write";
    /// Reads the state of the cluster and its metrics.
    ClusterRead "cluster.read";
    /// Makes backups of the whole state.
    ClusterBackup "cluster.backup";
    /// Changes members, leader, settings and quarantine.
    ClusterOperate "cluster.operate";
    /// Changes the access mode and the credentials of the whole cluster.
    AccessWrite "access.write";
}

impl Permission {
    /// The permission with this published name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|permission| permission.as_str() == name)
    }

    /// Whether it concerns the cluster as a whole, not what lies in a namespace.
    #[must_use]
    pub fn is_of_cluster(self) -> bool {
        PermissionSet::OF_CLUSTER.has(self)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet(u64);

const _: () = assert!(Permission::ALL.len() <= u64::BITS as usize);

impl PermissionSet {
    /// Every permission.
    pub(crate) const ALL: Self = Self::of(Permission::ALL);

    /// The permissions that concern the cluster as a whole.
    const OF_CLUSTER: Self = Self::of(&[
        Permission::ClusterRead,
        Permission::ClusterBackup,
        Permission::ClusterOperate,
        Permission::AccessWrite,
        Permission::QuotaWrite,
    ]);

    /// The set of these permissions.
    pub(crate) const fn of(permissions: &[Permission]) -> Self {
        Self(bits(permissions))
    }

    /// This set with further permissions.
    pub(crate) const fn and(self, permissions: &[Permission]) -> Self {
        Self(self.0 | bits(permissions))
    }

    /// This set without some permissions.
    pub(crate) const fn without(self, permissions: &[Permission]) -> Self {
        Self(self.0 & !bits(permissions))
    }

    /// The permissions, in the order of their discriminants.
    pub(crate) fn iter(self) -> impl Iterator<Item = Permission> {
        let all = Permission::ALL.iter().copied();
        all.filter(move |permission| self.has(*permission))
    }

    /// Whether the permission is one of these.
    #[must_use]
    pub const fn has(self, permission: Permission) -> bool {
        self.0 & bit(permission) != 0
    }
}

const fn bits(permissions: &[Permission]) -> u64 {
    let (mut bits, mut position) = (0, 0);
    while position < permissions.len() {
        bits |= bit(permissions[position]);
        position += 1;
    }
    bits
}

const fn bit(permission: Permission) -> u64 {
    1 << permission as u64
}
