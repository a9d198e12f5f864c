//! What a command needs of its actor.

use super::permission::Permission;
use crate::command_scope::CommandScope;

/// What a command needs of its actor (X16, X20).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Authority<'c> {
    /// Only the cluster itself proposes it.
    System,
    /// Only callers propose it, and they need one of the permissions in the scope.
    Caller(&'static [Permission], &'c CommandScope),
    /// As [`Authority::Caller`]; the cluster itself also proposes it.
    CallerOrSystem(&'static [Permission], &'c CommandScope),
    /// The holder of the task's token proposes it: the token is the proof.
    TaskToken,
}
