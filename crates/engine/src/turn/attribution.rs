//! On whose behalf a turn works: what a panic quarantines (design rule 10).

use super::{EntryState, Turn};
use crate::subject::Subject;

/// The subjects of the work that is in progress.
#[derive(Default)]
pub(super) struct Attribution {
    /// The subject of the innermost work, if it was attributed.
    current: Option<Subject>,
    /// The subjects of the work around it, outermost first.
    enclosing: Vec<Subject>,
}

impl Attribution {
    pub(super) fn clear(&mut self) {
        self.current = None;
        self.enclosing.clear();
    }
}

impl EntryState<'_> {
    /// The subjects of the work that panicked, innermost first. The first one that still exists once the turn is rolled
    /// back is to blame; without any, it is the command's own.
    pub(crate) fn take_panic_subjects(&mut self) -> Vec<Subject> {
        let Attribution { current, enclosing } = std::mem::take(&mut self.attribution);
        current
            .into_iter()
            .chain(enclosing.into_iter().rev())
            .collect()
    }
}

impl Turn<'_, '_> {
    /// Attributes the following work to a subject: a panic quarantines it.
    pub(crate) fn attribute_to(&mut self, subject: Subject) {
        self.entry.attribution.current = Some(subject);
    }

    /// Does work for `subject` in between: a panic in it quarantines `subject`, not the interrupted one.
    pub(crate) fn with_subject<T>(
        &mut self,
        subject: Subject,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let attribution = &mut self.entry.attribution;
        let depth = attribution.enclosing.len();
        let interrupted = attribution.current.take();
        attribution.enclosing.extend(interrupted.clone());
        attribution.enclosing.push(subject);
        let result = work(self);
        let attribution = &mut self.entry.attribution;
        attribution.enclosing.truncate(depth);
        attribution.current = interrupted;
        result
    }
}
