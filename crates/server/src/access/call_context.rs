//! The context of one call.

use super::authenticate::{Credential, authenticate};
use super::needs::Needs;
use crate::context::Context;
use crate::deadline;
use crate::errors::Refusal;
use crate::faults::planted;
use crate::gateway::{Gateway, GroupGateway};
use crate::members::ForwardedActor;
use crate::request;
use flotilla_api::{NamespacedRequest, Redact};
use flotilla_engine::ids::Namespace;
use flotilla_engine::{Actor, Permission, RejectionCode, SecretHash};
use flotilla_replica::Caller;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;
use tonic::Request;
use tonic::metadata::MetadataMap;

/// The context of one call: what all parts of the node share, and a gateway on behalf of the caller.
#[derive(Clone)]
pub(crate) struct CallContext {
    node: Arc<Context>,
    /// Submits commands and reads the state on behalf of the caller.
    pub(crate) gateway: Gateway,
    /// The digest of the secret that the caller has shown, if it is known here.
    secret: Option<SecretHash>,
    /// How many changes of the access mode and of tokens there were when the caller was judged last.
    access_seen: Arc<AtomicU64>,
    /// Whether the caller may not read the payloads in responses (X17).
    is_redacted: bool,
    /// The namespaces in which the caller was judged: usually one, and none if it is unknown.
    // A std lock and not tokio's because it is never held across an await.
    namespaces: Arc<Mutex<BTreeSet<Namespace>>>,
}

impl CallContext {
    /// Authenticates the caller of the request, and checks that it may make the call, before anything else in the request is
    /// examined. A call that a member forwards already carries its actor. What the call reads or submits is judged again, on the
    /// state that it reads or changes.
    ///
    /// # Errors
    /// The caller shows a bad credential, or may not make the call.
    pub(crate) async fn of<T: NamespacedRequest>(
        node: &Arc<Context>,
        request: &Request<T>,
    ) -> Result<Self, Refusal> {
        let context = Self::admitted(node, request).await?;
        context.record_token_use();
        // The token of a task is a proof only once the engine has found the task.
        if Self::needs(request) != Needs::TaskToken
            && let Some(caller) = request.extensions().get::<Caller>()
        {
            caller.mark_admitted();
        }
        Ok(context)
    }

    async fn admitted<T: NamespacedRequest>(
        node: &Arc<Context>,
        request: &Request<T>,
    ) -> Result<Self, Refusal> {
        let named = request.get_ref().named_namespace().map(request::namespace);
        let namespace = named.and_then(Result::ok);
        let mut context = Self::authenticated(node, request, namespace.as_ref()).await?;
        let needs = Self::needs(request);
        let deadline = deadline::of(request.metadata());
        if needs.is_of_cluster() {
            context.check_of_cluster(deadline).await?;
            return Ok(context);
        }
        if context.gateway.is_anonymous_in_open_cluster() {
            return Ok(context);
        }
        match namespace {
            Some(namespace) => {
                context.judge_in(&namespace).check(deadline).await?;
                context.is_redacted = needs.may_redact() && !context.may_read_payloads()?;
            }
            // The handler judges the caller in the namespace that it finds, or refuses the invalid name.
            None => context.gateway.check_caller(deadline).await?,
        }
        Ok(context)
    }

    /// Checks that the caller may make a call about the cluster, in whatever state the node is. What it has not applied yet may have
    /// given a subject the right to it.
    async fn check_of_cluster(&self, deadline: Instant) -> Result<(), Refusal> {
        let home = self.gateway.home();
        match self.gateway.actor() {
            Actor::Bound(_) => home.check(deadline).await,
            Actor::System | Actor::Anonymous | Actor::Token(_) => home.check_here(),
        }
    }

    /// As [`CallContext::of`], for a call about the formation of the cluster: until that is over, the node's configuration
    /// decides about the caller (X2).
    ///
    /// # Errors
    /// The caller shows a bad credential, or may not make the call.
    pub(crate) async fn of_formation<T>(
        node: &Arc<Context>,
        request: &Request<T>,
    ) -> Result<Self, Refusal> {
        let context = Self::authenticated(node, request, None).await?;
        context.gateway.home().check_formation()?;
        Ok(context)
    }

    /// Checks that a caller has a valid credential, if it needs one, before a large request is read.
    ///
    /// # Errors
    /// The caller shows a bad credential, or none although it needs one.
    pub(crate) async fn check_caller(
        node: &Arc<Context>,
        needs: Needs,
        (metadata, caller): (&MetadataMap, Option<&Caller>),
    ) -> Result<(), Refusal> {
        let Credential { actor, .. } = authenticate(node, metadata, caller).await?;
        // It is recorded with the call itself.
        node.caller_checks.check(&actor, needs)?;
        node.caller_checks
            .check_certificate(&actor, caller, needs)?;
        let gateway = node.node_gateway.on_behalf_of(actor, needs);
        if gateway.is_anonymous_in_open_cluster() {
            return Ok(());
        }
        gateway.check_caller(deadline::of(metadata)).await
    }

    /// Checks that a caller may read the metrics of the node, in whatever state the node is (H4).
    ///
    /// # Errors
    /// The caller shows a bad credential, or may not read them.
    pub(crate) async fn check_reader_of_metrics(
        node: &Arc<Context>,
        (metadata, caller): (&MetadataMap, Option<&Caller>),
    ) -> Result<(), Refusal> {
        if node.caller_checks.is_metrics_page_public() {
            return Ok(());
        }
        let needs = Needs::Permission(&[Permission::ClusterRead]);
        let recorded = Self::recorded(node, (metadata, caller), (needs, None));
        let Credential { actor, .. } = recorded.await?;
        let gateway = node.node_gateway.on_behalf_of(actor, needs);
        gateway.home().check_formation()
    }

    /// Authenticates the caller of a port of this node, records the call, and checks whether the configuration permits it.
    async fn recorded(
        node: &Context,
        (metadata, caller): (&MetadataMap, Option<&Caller>),
        call: (Needs, Option<&Namespace>),
    ) -> Result<Credential, Refusal> {
        let credential = authenticate(node, metadata, caller).await?;
        let checks = &node.caller_checks;
        checks.record((&credential.actor, caller), call);
        checks.check(&credential.actor, call.0)?;
        Ok(credential)
    }

    async fn authenticated<T>(
        node: &Arc<Context>,
        request: &Request<T>,
        namespace: Option<&Namespace>,
    ) -> Result<Self, Refusal> {
        let access_seen = Arc::new(AtomicU64::new(*node.watchers.access.borrow()));
        let needs = Self::needs(request);
        let Credential { actor, secret } = match request.extensions().get() {
            Some(ForwardedActor(actor)) => Credential::of(actor.clone()),
            None => {
                let caller = request.extensions().get();
                let shown = (request.metadata(), caller);
                let credential = Self::recorded(node, shown, (needs, namespace)).await?;
                node.caller_checks
                    .check_certificate(&credential.actor, caller, needs)?;
                credential
            }
        };
        let actor = planted::served_for(actor);
        Ok(Self {
            access_seen,
            secret,
            ..Self::on_behalf_of(node, actor, needs)
        })
    }

    fn needs<T>(request: &Request<T>) -> Needs {
        let needs = request.extensions().get().copied();
        needs.unwrap_or(Needs::NOTHING_SUFFICES)
    }

    /// The context of a call whose proof is the token of a task, whatever else its caller shows (W38).
    pub(crate) fn of_task_token(node: &Arc<Context>) -> Self {
        Self::on_behalf_of(node, Actor::Anonymous, Needs::TaskToken)
    }

    /// The context of a call without a credential.
    #[cfg(test)]
    pub(crate) fn of_anyone(node: &Arc<Context>) -> Self {
        Self::on_behalf_of(node, Actor::Anonymous, Needs::NOTHING_SUFFICES)
    }

    /// The context of what the node does itself.
    pub(crate) fn of_node(node: &Arc<Context>) -> Self {
        Self::over(node, node.node_gateway.clone())
    }

    fn on_behalf_of(node: &Arc<Context>, actor: Actor, needs: Needs) -> Self {
        Self::over(node, node.node_gateway.on_behalf_of(actor, needs))
    }

    fn over(node: &Arc<Context>, gateway: Gateway) -> Self {
        Self {
            node: Arc::clone(node),
            gateway,
            secret: None,
            is_redacted: false,
            namespaces: Arc::default(),
            access_seen: Arc::new(AtomicU64::new(*node.watchers.access.borrow())),
        }
    }

    /// The gateway of the namespace in which the caller is judged, now and again while the call lasts.
    pub(crate) fn judge_in(&self, namespace: &Namespace) -> GroupGateway<'_> {
        let namespaces = self.namespaces.lock();
        let mut namespaces = namespaces.unwrap_or_else(PoisonError::into_inner);
        if !namespaces.contains(namespace) {
            namespaces.insert(namespace.clone());
        }
        self.gateway.of(namespace)
    }

    /// Checks that the caller may still make the call as it did, by what this node has applied.
    pub(super) fn check_again(&self) -> Result<(), Refusal> {
        let (home, namespaces) = (self.gateway.home(), self.judged_in());
        match namespaces.is_empty() {
            true if self.gateway.needs().is_of_cluster() => home.check_here()?,
            true => home.check_credential()?,
            false => {}
        }
        for namespace in &namespaces {
            self.gateway.of(namespace).check_here()?;
        }
        self.check_payloads()
    }

    /// The namespaces in which the caller was judged.
    fn judged_in(&self) -> BTreeSet<Namespace> {
        let namespaces = self.namespaces.lock();
        namespaces.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the caller may read the payloads in responses, by what this node has applied.
    fn may_read_payloads(&self) -> Result<bool, Refusal> {
        for namespace in &self.judged_in() {
            if !self.gateway.of(namespace).has(Permission::RunPayloads)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that the caller may still read the payloads that it reads.
    fn check_payloads(&self) -> Result<(), Refusal> {
        if !self.gateway.needs().may_redact() || self.is_redacted || self.may_read_payloads()? {
            return Ok(());
        }
        let text = "expected a caller that may read payloads, but it has lost that permission";
        Err(Refusal::new(RejectionCode::PermissionDenied, text)
            .with_hint("repeat the call: its response then has no payloads"))
    }

    /// Records that a caller of this node has shown a valid token.
    fn record_token_use(&self) {
        if let (Actor::Token(token), Some(_)) = (self.gateway.actor(), self.secret) {
            let now_ms = self.gateway.home().replica().now_ms();
            self.caller_checks.token_uses.record(*token, now_ms);
        }
    }

    /// What the caller may read of a response, by what this node has applied: at least what the response shows.
    pub(crate) fn visible<R: Redact>(&self, mut response: R) -> R {
        let reads_payloads = !self.gateway.needs().may_redact()
            || !self.is_redacted && matches!(self.may_read_payloads(), Ok(true));
        if !reads_payloads {
            response.redact();
        }
        response
    }

    /// The digest of the secret that the caller has shown, if it is known here.
    pub(super) fn secret(&self) -> Option<SecretHash> {
        self.secret
    }

    /// How many changes of the access mode and of tokens there were when the caller was judged last.
    pub(super) fn access_seen(&self) -> &AtomicU64 {
        &self.access_seen
    }

    /// What all parts of the node share.
    pub(crate) fn node(&self) -> &Arc<Context> {
        &self.node
    }
}

impl Deref for CallContext {
    type Target = Context;

    fn deref(&self) -> &Context {
        &self.node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use flotilla_api::v1;
    use flotilla_engine::ids::{TokenId, TokenName};
    use flotilla_engine::{CommandScope, CreateToken, Grant, RevokeToken};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// How often a call marks its connection as that of a permitted caller.
    async fn marks<T: NamespacedRequest>(node: &Arc<Context>, call: T, needs: Needs) -> usize {
        let count = Arc::new(AtomicUsize::new(0));
        let marks = count.clone();
        let mark = move || {
            marks.fetch_add(1, Ordering::Relaxed);
        };
        let mut request = Request::new(call);
        let caller = Caller::default().with_admission(mark);
        request.extensions_mut().insert(caller);
        request.extensions_mut().insert(needs);
        CallContext::of(node, &request)
            .await
            .expect("it is permitted");
        count.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_call_with_the_token_of_a_task_proves_nothing_before_it_is_served() {
        let node = StillNode::start().await;
        let report = v1::ReportTaskRequest::default();
        assert_eq!(marks(&node.context, report, Needs::TaskToken).await, 0);
        let who_am_i = v1::WhoAmIRequest {};
        assert_eq!(marks(&node.context, who_am_i, Needs::Credential).await, 1);
    }

    #[tokio::test]
    async fn a_response_has_payloads_only_if_its_caller_may_still_read_them() {
        let node = StillNode::start().await;
        let (secret, scope) = (SecretHash([7; 32]), CommandScope::Cluster);
        let id = TokenId::of_secret(secret);
        let created = CreateToken {
            id,
            scope: scope.clone(),
            name: TokenName::new("a token").expect("a name"),
            identity: None,
            grants: vec![Grant::parse("operator@*").expect("a grant")],
            approves: Vec::new(),
            secret,
            ttl_ms: None,
        };
        node.submit(Box::new(created).into()).await;
        let needs = Needs::Permission(&[Permission::RunRead]);
        let context = CallContext::on_behalf_of(&node.context, Actor::Token(id), needs);
        context.judge_in(&Namespace::default_namespace());
        let visible = || {
            let run = v1::Run {
                input: b"1".to_vec().into(),
                ..v1::Run::default()
            };
            context.visible(run).input
        };
        assert_eq!(visible(), "1");
        // The call was admitted, but what it reads may be newer.
        node.submit(RevokeToken { id, scope }.into()).await;
        assert_eq!(visible(), "");
    }

    #[tokio::test]
    async fn a_caller_is_judged_in_each_namespace_that_a_call_is_about() {
        let node = StillNode::start().await;
        let (secret, scope) = (SecretHash([7; 32]), CommandScope::Cluster);
        let id = TokenId::of_secret(secret);
        let created = CreateToken {
            id,
            scope,
            name: TokenName::new("a token").expect("a name"),
            identity: None,
            grants: vec![Grant::parse("operator@shop").expect("a grant")],
            approves: Vec::new(),
            secret,
            ttl_ms: None,
        };
        node.submit(Box::new(created).into()).await;
        let needs = Needs::Permission(&[Permission::RunStart]);
        let context = CallContext::on_behalf_of(&node.context, Actor::Token(id), needs);
        let [shop, bank] = ["shop", "bank"].map(|name| Namespace::new(name).expect("a name"));
        assert!(context.judge_in(&shop).check_here().is_ok());
        assert!(context.check_again().is_ok());
        // Not in the first one once more.
        assert!(context.judge_in(&bank).check_here().is_err());
        assert!(context.judge_in(&shop).check_here().is_ok());
        assert!(context.check_again().is_err(), "it has no right in one");
    }
}
