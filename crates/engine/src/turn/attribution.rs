//! On whose behalf a turn works: what a panic quarantines (design rule 10).

use super::{EntryState, Turn};
use crate::subject::Subject;

/// The subjects of the work that is in progress.
#[derive(Default)]
pub(super) struct Attribution {
    /// Outermost first.
    subjects: Vec<Subject>,
    /// How many of them belong to the work around the innermost one.
    enclosing_count: usize,
}

impl Attribution {
    pub(super) fn clear(&mut self) {
        self.subjects.clear();
        self.enclosing_count = 0;
    }
}

impl EntryState<'_> {
    /// The subjects of the work that panicked, innermost first. The first one that still exists once the turn is rolled
    /// back is to blame; without any, it is the command's own.
    pub(crate) fn take_panic_subjects(&mut self) -> Vec<Subject> {
        let mut subjects = std::mem::take(&mut self.attribution).subjects;
        subjects.reverse();
        subjects
    }
}

impl Turn<'_, '_> {
    /// Attributes the following work to a subject: a panic quarantines it.
    pub(crate) fn attribute_to(&mut self, subject: Subject) {
        let Attribution {
            subjects,
            enclosing_count,
        } = &mut self.entry.attribution;
        subjects.truncate(*enclosing_count);
        subjects.push(subject);
    }

    /// Does work for `subject` in between: a panic in it quarantines `subject`, not the interrupted one.
    pub(crate) fn with_subject<T>(
        &mut self,
        subject: Subject,
        work: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let attribution = &mut self.entry.attribution;
        let interrupted_count = attribution.subjects.len();
        attribution.subjects.push(subject);
        let enclosing_count =
            std::mem::replace(&mut attribution.enclosing_count, interrupted_count + 1);
        let result = work(self);
        let attribution = &mut self.entry.attribution;
        attribution.subjects.truncate(interrupted_count);
        attribution.enclosing_count = enclosing_count;
        result
    }
}
