//! The gateway: submits commands and reads the applied state, in the Raft group that has it.
//!
//! A namespace lives in one Raft group. The home group has what belongs to no namespace: the members, the settings and
//! the directory of namespaces. A caller must choose with [`Gateway::of`] or [`Gateway::home`] before it can read or
//! submit. Today a cluster has one group, so every choice leads to the same replica.

use crate::access::{InitialAccess, Needs, not_initialized};
use crate::errors::Refusal;
use crate::faults::planted::{self, Bug};
use crate::limits::READ_RESERVATION_BYTES;
use crate::memory::{FairPool, MemoryPool, PoolShare};
use crate::quota_refusals::QuotaRefusals;
use crate::slow_commands::SlowCommands;
use flotilla_engine::ids::Namespace;
use flotilla_engine::reply::UnexpectedReply;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{
    Actor, Command, CommandEnvelope, CommandScope, Needed, Operation, Permission, QuotaRejection,
    Rejection, RejectionCode, Reply, TaskToken, view,
};
use flotilla_replica::Replica;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Leads to the Raft groups of the cluster, from any node, on behalf of one caller or of the node itself. Everything that is
/// submitted and read through it is judged by the rights of that caller.
#[derive(Clone)]
pub(crate) struct Gateway {
    groups: Arc<Groups>,
    authority: Arc<CallAuthority>,
}

/// The Raft groups of the cluster.
struct Groups {
    replica: Replica,
    slow_commands: SlowCommands,
    /// Commands that a quota has refused lately.
    quota_refusals: QuotaRefusals,
    /// For reads in progress.
    reads: FairPool,
    /// Decides about callers until the cluster has an access mode.
    initial_access: InitialAccess,
}

/// On whose behalf a gateway acts, and what the call needs.
struct CallAuthority {
    actor: Actor,
    needs: Needs,
}

/// Submits commands to one Raft group and reads its state, from any node.
#[derive(Clone)]
pub(crate) struct GroupGateway<'g> {
    groups: &'g Arc<Groups>,
    authority: &'g CallAuthority,
    /// Where it reads.
    scope: CommandScope,
    /// For reads in progress of the namespace.
    reads: PoolShare<'g>,
}

/// How fresh the state of a read must be (design rule 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Sees everything that was acknowledged anywhere before the read began.
    Linearizable,
    /// Sees what this node has applied.
    Stale,
}

impl Freshness {
    /// The freshness that a request's `stale` asks for.
    pub(crate) fn of(is_stale: bool) -> Self {
        if is_stale {
            Self::Stale
        } else {
            Self::Linearizable
        }
    }
}

impl Gateway {
    /// The gateway of the node itself over the replica of the only group, with the memory for its reads in progress.
    pub(crate) fn new(
        replica: Replica,
        initial_access: InitialAccess,
        slow_commands: SlowCommands,
        reads: &MemoryPool,
    ) -> Self {
        Self {
            groups: Arc::new(Groups {
                replica,
                slow_commands,
                quota_refusals: QuotaRefusals::default(),
                reads: FairPool::new(reads, READ_RESERVATION_BYTES),
                initial_access,
            }),
            authority: Arc::new(CallAuthority {
                actor: Actor::System,
                needs: Needs::Credential,
            }),
        }
    }

    /// Whether the caller shows no credential and the cluster was open when this node last read its mode. Checking such a caller
    /// costs as much as it saves, because what it reads or submits is judged anyway.
    pub(crate) fn is_anonymous_in_open_cluster(&self) -> bool {
        self.authority.actor == Actor::Anonymous && self.groups.initial_access.was_open()
    }

    /// Checks that the caller has a valid credential, if it needs one, whatever its permissions.
    pub(crate) async fn check_caller(&self, deadline: Instant) -> Result<(), Refusal> {
        let needs = match self.authority.needs {
            Needs::TaskToken => Needs::TaskToken,
            Needs::Credential | Needs::Permission(_) | Needs::Read(_) => Needs::Credential,
        };
        let gateway = self.on_behalf_of(self.authority.actor.clone(), needs);
        gateway.home().check(deadline).await
    }

    /// The same groups on behalf of a caller, for a call that needs this.
    pub(crate) fn on_behalf_of(&self, actor: Actor, needs: Needs) -> Self {
        Self {
            groups: Arc::clone(&self.groups),
            authority: Arc::new(CallAuthority { actor, needs }),
        }
    }

    /// On whose behalf it acts.
    pub(crate) fn actor(&self) -> &Actor {
        &self.authority.actor
    }

    /// What the call needs of its caller.
    pub(crate) fn needs(&self) -> Needs {
        self.authority.needs
    }

    /// The group in which the namespace lives.
    pub(crate) fn of(&self, namespace: &Namespace) -> GroupGateway<'_> {
        let scope = CommandScope::Namespace(namespace.clone());
        self.only_group(scope, self.groups.reads.share_of(namespace))
    }

    /// The group that has the task. Reports by token name no namespace (W38); tokens are opaque to clients, so they can
    /// name a group once there are several.
    pub(crate) fn of_task(&self, _token: &TaskToken) -> GroupGateway<'_> {
        self.home()
    }

    /// The group that has what belongs to no namespace, and the view of the node as a whole.
    pub(crate) fn home(&self) -> GroupGateway<'_> {
        self.only_group(CommandScope::Cluster, self.groups.reads.share_of_cluster())
    }

    /// Submits a command to the group of its scope. Every refusal says whether the command may have been applied.
    ///
    /// What only the home group may decide, such as that a namespace exists, goes to [`Gateway::home`] instead.
    pub(crate) async fn submit<O: Operation>(
        &self,
        command: Command<O>,
        deadline: Instant,
    ) -> Result<O::Reply, Refusal> {
        let scope: CommandScope = command.scope.clone().into();
        self.of_scope(&scope).submit(command, deadline).await
    }

    /// The group that has what lies in the scope.
    pub(crate) fn of_scope(&self, scope: &CommandScope) -> GroupGateway<'_> {
        match scope {
            CommandScope::Cluster => self.home(),
            CommandScope::Namespace(namespace) => self.of(namespace),
        }
    }

    /// Decides about callers until the cluster has an access mode.
    pub(crate) fn initial_access(&self) -> &InitialAccess {
        &self.groups.initial_access
    }

    /// The log of slow commands.
    pub(crate) fn slow_commands(&self) -> &SlowCommands {
        &self.groups.slow_commands
    }

    /// The cluster's time, as far as this node knows. In milliseconds.
    pub(crate) fn now_ms(&self) -> u64 {
        self.groups.replica.now_ms()
    }

    fn only_group<'g>(&'g self, scope: CommandScope, reads: PoolShare<'g>) -> GroupGateway<'g> {
        GroupGateway {
            groups: &self.groups,
            authority: &self.authority,
            scope,
            reads,
        }
    }
}

impl<'g> GroupGateway<'g> {
    /// The replica behind it.
    pub(crate) fn replica(&self) -> &'g Replica {
        &self.groups.replica
    }

    /// The engine version on which the group has agreed, as far as this node knows.
    pub(crate) fn engine_version(&self) -> u32 {
        self.replica().engine_version()
    }

    /// Submits a command. Every refusal says whether the command may have been applied.
    pub(crate) async fn submit<O: Operation>(
        &self,
        command: Command<O>,
        deadline: Instant,
    ) -> Result<O::Reply, Refusal> {
        Ok(self.propose(command, deadline).await??)
    }

    /// As `submit`, but returns the engine's rejection separately.
    pub(crate) async fn propose<O: Operation>(
        &self,
        command: Command<O>,
        deadline: Instant,
    ) -> Result<Result<O::Reply, Rejection>, Refusal> {
        let envelope = command.untyped().by(self.authority.actor.clone());
        Ok(match self.propose_any(envelope, deadline).await? {
            Ok(reply) => Ok(typed::<O>(reply)?),
            Err(rejection) => Err(rejection),
        })
    }

    async fn propose_any(
        &self,
        mut envelope: CommandEnvelope,
        deadline: Instant,
    ) -> Result<Result<Reply, Rejection>, Refusal> {
        if let Err(rejection) = self.judge_command(&envelope, deadline).await? {
            return Ok(Err(rejection));
        }
        if let Some(rejection) = self.known_refusal(&envelope.command, deadline).await? {
            return Ok(Err(rejection));
        }
        envelope.command = planted::changed(envelope.command);
        if let Some(reply) = planted::early_reply(&envelope.command) {
            let replica = self.replica().clone();
            tokio::spawn(async move { replica.submit(envelope, deadline).await });
            return Ok(Ok(reply));
        }
        let (kind, scope) = (envelope.command.body.kind(), envelope.command.scope.clone());
        let began = Instant::now();
        let submitted = self.replica().submit(envelope, deadline).await;
        self.groups
            .slow_commands
            .observe(kind, &scope, began.elapsed());
        let replied = submitted?;
        if let Err(Rejection::Quota(QuotaRejection::Exceeded(exceeded))) = &replied
            && let CommandScope::Namespace(namespace) = &scope
        {
            let refusals = &self.groups.quota_refusals;
            refusals.keep(namespace, kind, exceeded);
        }
        Ok(replied)
    }

    /// The refusal of a command that a quota does not allow, if a command like it was refused lately (X40).
    async fn known_refusal(
        &self,
        command: &Command,
        deadline: Instant,
    ) -> Result<Option<Rejection>, Refusal> {
        if !self.groups.quota_refusals.apply_to(command) {
            return Ok(None);
        }
        let foresee = || {
            let now_ms = self.replica().now_ms();
            self.read_stored(|view| view::quota_refusal(view, now_ms, command))
        };
        if foresee()?.is_none() {
            return Ok(None);
        }
        self.catch_up(deadline).await?;
        let exceeded = foresee()?;
        Ok(exceeded.map(|exceeded| QuotaRejection::Exceeded(Box::new(exceeded)).into()))
    }

    /// Refuses early what the engine would reject, so that it costs no entry of the log. A right that this node does not
    /// know of may be newer than what it has applied.
    async fn judge_command(
        &self,
        envelope: &CommandEnvelope,
        deadline: Instant,
    ) -> Result<Result<(), Rejection>, Refusal> {
        // In an open cluster, checking here costs as much as it saves, because the engine checks anyway.
        let is_unlikely_refused =
            envelope.actor == Actor::Anonymous && self.groups.initial_access.was_open();
        if envelope.actor == Actor::System || is_unlikely_refused {
            return Ok(Ok(()));
        }
        let judge = || {
            let now_ms = self.replica().now_ms();
            self.read_stored(|view| {
                if !self.groups.initial_access.is_initialized(view)? {
                    return Ok(None);
                }
                view::judge_command(view, now_ms, envelope).map(Some)
            })
        };
        if judge()?.is_some_and(|judged| judged.is_ok()) {
            return Ok(Ok(()));
        }
        self.catch_up(deadline).await?;
        judge()?.ok_or_else(not_initialized)
    }

    /// Checks that the caller may make the call. What this node has not applied yet may permit it: that the cluster is
    /// open, or that it has an access mode at all. Nothing gives an existing token more rights.
    pub(crate) async fn check(&self, deadline: Instant) -> Result<(), Refusal> {
        let Err(refusal) = self.check_here() else {
            return Ok(());
        };
        let is_token = matches!(self.authority.actor, Actor::Token(_));
        let is_initialized = self.groups.initial_access.is_known();
        if is_initialized && is_token {
            return Err(refusal);
        }
        match self.catch_up(deadline).await {
            Ok(()) => self.check_here(),
            Err(_) if is_initialized => Err(refusal),
            Err(error) => Err(error),
        }
    }

    /// Checks that the caller may make the call, by what this node has applied, in whatever state the node is.
    pub(crate) fn check_here(&self) -> Result<(), Refusal> {
        let now_ms = self.replica().now_ms();
        let judging = Judging::of(self);
        self.read_stored(|view| judging.judge(view, now_ms))?
    }

    /// Whether the caller has the permission, by what this node has applied.
    pub(crate) fn has(&self, permission: Permission) -> Result<bool, Refusal> {
        let now_ms = self.replica().now_ms();
        let needed = Needed {
            permissions: &[permission],
            scope: &self.scope,
        };
        let actor = &self.authority.actor;
        let judged = self.read_stored(|view| view::judge(view, now_ms, actor, needed))?;
        Ok(judged.is_ok())
    }

    /// Checks that the caller may call at all, by what this node has applied, in whatever state the node is.
    pub(crate) fn check_credential(&self) -> Result<(), Refusal> {
        let now_ms = self.replica().now_ms();
        let actor = &self.authority.actor;
        Ok(self.read_stored(|view| view::judge_credential(view, now_ms, actor))??)
    }

    /// As `check_here`, for a call about the formation of the cluster: until that is over, the node's configuration decides.
    pub(crate) fn check_formation(&self) -> Result<(), Refusal> {
        let initial_access = &self.groups.initial_access;
        match self.read_stored(|view| initial_access.is_initialized(view))? {
            true => self.check_here(),
            false => initial_access.check(&self.authority.actor, self.replica()),
        }
    }

    /// Reads what this node has applied, in whatever state it is, without judging the caller: to find out who calls.
    pub(crate) fn read_stored<T>(
        &self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError>,
    ) -> Result<T, Refusal> {
        Ok(self.replica().stored_view(|view| read(view))??)
    }

    /// Waits until this node has applied everything that was acknowledged before.
    pub(crate) async fn catch_up(&self, deadline: Instant) -> Result<(), Refusal> {
        if planted::has(Bug::StaleRead) {
            return Ok(());
        }
        Ok(self.replica().read_index(deadline).await?)
    }

    /// Reads a few rows.
    pub(crate) async fn read<T>(
        &self,
        freshness: Freshness,
        deadline: Instant,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send,
    ) -> Result<T, Refusal> {
        if freshness == Freshness::Linearizable {
            self.catch_up(deadline).await?;
        }
        self.read_here(read)
    }

    /// Reads many rows or large ones, on a blocking thread. It waits until memory is free for the result.
    pub(crate) async fn scan<T: Send + 'static>(
        &self,
        freshness: Freshness,
        deadline: Instant,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        if freshness == Freshness::Linearizable {
            self.catch_up(deadline).await?;
        }
        let bytes = READ_RESERVATION_BYTES.min(self.reads.bytes_max());
        let memory = timeout_at(deadline, self.reads.reserve(bytes)).await;
        let memory = memory.map_err(|_| {
            Refusal::overloaded(
                "expected memory for the read before its deadline, but other reads, of this or other namespaces, use all that it may have",
            )
        })?;
        // The thread owns the reservation, because it reads to the end even if the caller has gone.
        let (found, _memory) = self
            .scan_here(move |reader| Ok((read(reader)?, memory)))
            .await?;
        Ok(found)
    }

    /// As `scan`, of this node's applied state, but reserves no memory: for the node's own reads, which run one at a time, and
    /// for reads whose caller has reserved it.
    pub(crate) async fn scan_here<T: Send + 'static>(
        &self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, Refusal> {
        let judging = Judging::of(self);
        let scan = move || judging.read(read);
        let scanned = tokio::task::spawn_blocking(scan).await;
        scanned.map_err(|error| {
            Refusal::internal(format!(
                "expected to read the state, but the reader failed: {error}"
            ))
        })?
    }

    /// Reads a few rows of this node's applied state, without waiting.
    pub(crate) fn read_here<T>(
        &self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError>,
    ) -> Result<T, Refusal> {
        Judging::of(self).read(read)
    }
}

/// What a read is judged by. It owns its parts, because a thread may read to the end even if the caller has gone.
struct Judging {
    actor: Actor,
    needs: Needs,
    scope: CommandScope,
    groups: Arc<Groups>,
}

impl Judging {
    fn of(gateway: &GroupGateway<'_>) -> Self {
        let CallAuthority { actor, needs } = gateway.authority;
        Self {
            actor: actor.clone(),
            needs: *needs,
            scope: gateway.scope.clone(),
            groups: Arc::clone(gateway.groups),
        }
    }

    /// Reads the applied state, if the caller may make the call by that same state (X21).
    fn read<T>(
        &self,
        read: impl FnOnce(&dyn Reader) -> Result<T, StoreError>,
    ) -> Result<T, Refusal> {
        let replica = &self.groups.replica;
        let now_ms = replica.now_ms();
        let found = replica.view(|view| {
            Ok::<_, StoreError>(match self.judge(view, now_ms)? {
                Ok(()) => Ok(read(view)?),
                Err(refusal) => Err(refusal),
            })
        });
        found??
    }

    fn judge(&self, view: &dyn Reader, now_ms: u64) -> Result<Result<(), Refusal>, StoreError> {
        if self.actor == Actor::System {
            return Ok(Ok(()));
        }
        if !self.groups.initial_access.is_initialized(view)? {
            return Ok(Err(not_initialized()));
        }
        let judged = match self.needs {
            Needs::TaskToken => Ok(()),
            Needs::Credential => view::judge_credential(view, now_ms, &self.actor)?,
            Needs::Permission(permissions) | Needs::Read(permissions) => {
                let scope = &self.scope;
                view::judge(view, now_ms, &self.actor, Needed { permissions, scope })?
            }
        };
        let Err(rejection) = judged else {
            return Ok(Ok(()));
        };
        let hidden = match self.hides_namespace(&rejection) {
            Some(namespace) => {
                let caller = (&self.actor, namespace);
                let is_known = view::has_grant_in(view, now_ms, caller)?;
                (!is_known).then(|| Refusal::namespace_not_found(namespace))
            }
            None => None,
        };
        Ok(Err(hidden.unwrap_or_else(|| rejection.into())))
    }

    /// The namespace that a refused caller may only learn of if it has a grant there (X24).
    fn hides_namespace(&self, rejection: &Rejection) -> Option<&Namespace> {
        let is_denied = rejection.code() == RejectionCode::PermissionDenied;
        let is_read = matches!(self.needs, Needs::Read(_));
        self.scope.namespace().filter(|_| is_read && is_denied)
    }
}

/// The reply as its command's type. A reply of another command is a bug, perhaps of the former
/// leader.
fn typed<O: Operation>(reply: Reply) -> Result<O::Reply, Refusal> {
    O::Reply::try_from(reply).map_err(|error| {
        let error: UnexpectedReply = error.into();
        Refusal::internal(error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use futures::FutureExt;
    use std::sync::mpsc;
    use std::time::Duration;

    #[tokio::test]
    async fn a_read_waits_until_other_reads_leave_memory_for_it() {
        let node = StillNode::start().await;
        let (gateway, reads) = (node.context.node_gateway.home(), &node.context.memory.reads);
        let all = reads.try_reserve(reads.bytes_max()).expect("it is free");
        let scan = |after| gateway.scan(Freshness::Stale, Instant::now() + after, |_| Ok(1));
        let refused = scan(Duration::from_millis(1))
            .await
            .expect_err("all is used");
        assert!(refused.may_succeed_later());
        let mut waiting = Box::pin(scan(Duration::from_secs(60)));
        assert!(waiting.as_mut().now_or_never().is_none(), "it waits");
        drop(all);
        assert_eq!(waiting.await.expect("there is memory"), 1);
        assert_eq!(reads.bytes_reserved(), 0);
    }

    #[tokio::test]
    async fn reads_of_a_namespace_leave_room_for_others() {
        let node = StillNode::start().await;
        let gateway = &node.context.node_gateway;
        let namespaces = ["noisy", "quiet"].map(|name| Namespace::new(name).expect("a name"));
        let [noisy, quiet] = namespaces.each_ref().map(|namespace| gateway.of(namespace));
        let bytes = noisy.reads.bytes_max();
        let all = noisy.reads.reserve(bytes).await;
        let soon = || Instant::now() + Duration::from_millis(1);
        let refused = noisy.scan(Freshness::Stale, soon(), |_| Ok(())).await;
        assert!(refused.is_err_and(|refusal| refusal.may_succeed_later()));
        let later = Instant::now() + Duration::from_secs(60);
        let read = quiet.scan(Freshness::Stale, later, |_| Ok(())).await;
        assert!(read.is_ok(), "{:?}", read.err());
        drop(all);
    }

    #[tokio::test]
    async fn a_read_keeps_its_memory_after_its_caller_has_gone() {
        let node = StillNode::start().await;
        let (gateway, reads) = (node.context.node_gateway.home(), &node.context.memory.reads);
        let (began, mut beginning) = tokio::sync::mpsc::channel(1);
        let (finish, finishing) = mpsc::sync_channel::<()>(1);
        let deadline = Instant::now() + Duration::from_secs(60);
        let scan = gateway.scan(Freshness::Stale, deadline, move |_| {
            began.blocking_send(()).expect("the test waits for it");
            // An error says that the test has dropped the sender.
            finishing.recv().ok();
            Ok(())
        });
        tokio::select! {
            _ = scan => panic!("the read has not ended"),
            _ = beginning.recv() => {}
        }
        assert_eq!(reads.bytes_reserved(), READ_RESERVATION_BYTES);
        drop(finish);
        let all = reads.reserve(reads.bytes_max()).await;
        assert!(all.is_some(), "the read has released its memory");
    }
}
