//! The context of one call.

use super::authenticate::{AUTHORIZATION, authenticate};
use super::needs::Needs;
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Gateway;
use flotilla_engine::Actor;
use std::ops::Deref;
use std::sync::Arc;
use tonic::Request;
use tonic::metadata::{AsciiMetadataValue, MetadataMap};

/// The context of one call: what all parts of the node share, and a gateway on behalf of the caller.
#[derive(Clone)]
pub(crate) struct CallContext {
    node: Arc<Context>,
    /// Submits commands and reads the state on behalf of the caller.
    pub(crate) gateway: Gateway,
    /// What the caller shows, for calls that are forwarded.
    credential: Option<AsciiMetadataValue>,
}

impl CallContext {
    /// Authenticates the caller of the request. If the call concerns the cluster as a whole, also checks that the caller
    /// may make it; a call in a namespace is judged with what it reads or submits there.
    ///
    /// # Errors
    /// The caller shows a bad credential, or may not make the call.
    pub(crate) async fn of<T>(node: &Arc<Context>, request: &Request<T>) -> Result<Self, Refusal> {
        let needs = request.extensions().get().copied();
        let needs = needs.unwrap_or(Needs::NOTHING_SUFFICES);
        let metadata = request.metadata();
        let actor = authenticate(&node.node_gateway, metadata).await?;
        let context = Self {
            credential: metadata.get(AUTHORIZATION).cloned(),
            ..Self::on_behalf_of(node, actor, needs)
        };
        if needs.is_of_cluster() {
            context.gateway.home().check_here()?;
        }
        Ok(context)
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
            credential: None,
        }
    }

    /// Shows the caller's credential in a call that is forwarded to another node.
    pub(crate) fn show_credential(&self, metadata: &mut MetadataMap) {
        if let Some(credential) = &self.credential {
            metadata.insert(AUTHORIZATION, credential.clone());
        }
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
