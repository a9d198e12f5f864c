//! Giving rights to subjects, and taking them back (X17).

use super::authority::Authority;
use super::binding_subject::BindingSubject;
use super::grant::{self, Grant};
use super::{bindings, credentials};
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::ids::ApproverRole;
use crate::reply::{Done, SubjectBound};
use crate::tables::{BindingRecord, Bindings, BindingsByScope};
use crate::turn::{Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Gives a subject rights in a scope, in place of those that it had there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindSubject {
    /// The subject.
    pub subject: BindingSubject,
    /// The namespace whose administrators give the rights, or the cluster.
    pub scope: CommandScope,
    /// What the subject may do. At least one.
    pub grants: Vec<Grant>,
    /// The approver roles of the subject (W61); may be empty.
    pub approves: Vec<ApproverRole>,
}

impl BindSubject {
    /// Checks the fields, so that a server can refuse them before the proposal.
    ///
    /// # Errors
    /// As for [`CreateToken::check`](super::CreateToken::check).
    pub fn check(&self) -> Result<(), AccessRejection> {
        grant::check_all(&self.scope, &self.grants, &self.approves)
    }

    pub(crate) fn authority<'c>(&'c self, _: &'c CommandScope) -> Authority<'c> {
        credentials::authority(&self.scope)
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<SubjectBound> {
        self.check()?;
        credentials::check_grants(turn, &self.scope, &self.grants)?;
        credentials::check_approves(turn, &self.scope, &self.approves)?;
        let key = (self.subject.clone(), self.scope.clone());
        let is_new = turn.get::<Bindings>(&key)?.is_none();
        if is_new {
            bindings::count_new(turn, &self.scope)?;
            turn.put::<BindingsByScope>(&(self.scope.clone(), self.subject.clone()), ());
        }
        let record = BindingRecord {
            grants: self.grants.clone(),
            approves: self.approves.clone(),
            changed_at_ms: turn.now_ms(),
            changed_by: turn.actor().into_author(),
        };
        turn.put::<Bindings>(&key, record);
        credentials::note_change(turn)?;
        Ok(SubjectBound { is_new })
    }
}

/// Takes back the rights that a subject has in a scope. No later entry carries out a command that needs them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnbindSubject {
    /// The subject.
    pub subject: BindingSubject,
    /// The scope of the binding.
    pub scope: CommandScope,
}

impl UnbindSubject {
    pub(crate) fn authority<'c>(&'c self, _: &'c CommandScope) -> Authority<'c> {
        credentials::authority(&self.scope)
    }

    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Done> {
        let key = (self.subject.clone(), self.scope.clone());
        if turn.get::<Bindings>(&key)?.is_none() {
            return Err(AccessRejection::BindingNotFound {
                subject: self.subject.clone(),
                scope: self.scope.clone(),
            }
            .into());
        }
        turn.delete::<Bindings>(&key);
        turn.delete::<BindingsByScope>(&(self.scope.clone(), self.subject.clone()));
        bindings::count_deleted(turn, &self.scope)?;
        credentials::note_change(turn)?;
        Ok(Done {})
    }
}
