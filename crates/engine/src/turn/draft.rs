//! Records that a turn changes.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A record that the turn may change; copied on its first change if it is shared.
#[derive(Clone)]
pub(crate) struct Draft<R> {
    record: Arc<R>,
    is_changed: bool,
}

impl<R> Draft<R> {
    /// Makes a draft of a record.
    pub(crate) fn of(record: Arc<R>) -> Self {
        Self {
            record,
            is_changed: false,
        }
    }

    /// Whether the draft may differ from the record that it was made from.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// The current record, shared; a later change copies it.
    pub(crate) fn share(&self) -> Arc<R> {
        self.record.clone()
    }
}

impl<R> Deref for Draft<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.record
    }
}

impl<R: Clone> DerefMut for Draft<R> {
    fn deref_mut(&mut self) -> &mut R {
        self.is_changed = true;
        Arc::make_mut(&mut self.record)
    }
}

impl<R> From<Draft<R>> for Arc<R> {
    fn from(draft: Draft<R>) -> Self {
        draft.record
    }
}
