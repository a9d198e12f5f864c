//! Records that a turn changes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A record that the turn may change; copied on its first change if it is shared.
#[derive(Clone)]
pub(crate) struct Draft<R>(Arc<R>);

impl<R> Draft<R> {
    /// Makes a draft of a record.
    pub(crate) fn of(record: Arc<R>) -> Self {
        Self(record)
    }

    /// Whether the draft is still the very record that it was made from.
    pub(crate) fn is(&self, record: &Arc<R>) -> bool {
        Arc::ptr_eq(&self.0, record)
    }

    /// The current record, shared; a later change copies it.
    pub(crate) fn share(&self) -> Arc<R> {
        self.0.clone()
    }
}

impl<R> Deref for Draft<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.0
    }
}

impl<R: Clone> DerefMut for Draft<R> {
    fn deref_mut(&mut self) -> &mut R {
        Arc::make_mut(&mut self.0)
    }
}

impl<R> From<Draft<R>> for Arc<R> {
    fn from(draft: Draft<R>) -> Self {
        draft.0
    }
}
