//! What may not run at the same time: `target` and `locks` (W85).

use super::{Context, Field, Reported, context::Visible, template};
use crate::expression::compile_lock;
use crate::{Code, Finding, tree::Kind};
use flotilla_engine::definition::{LockSource, Template};
use flotilla_engine::limits::LOCKS_MAX;

/// Reads the value of `target`.
pub(super) fn target<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    context.seeing(Visible::Start, |context| {
        template::value_of_run(field, context)
    })
}

/// Reads one lock, or a list of them.
pub(super) fn locks<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<LockSource>, Reported> {
    if !matches!(field.node.kind, Kind::Sequence(_)) {
        return Ok(vec![lock(field, context)?]);
    }
    let items = field.items_at_most(LOCKS_MAX, context)?;
    let locks: Vec<_> = items.iter().map(|item| lock(item, context)).collect();
    locks.into_iter().collect()
}

/// Reads a lock: a pattern, a path or an expression.
fn lock<'doc>(field: &Field<'doc>, context: &mut Context<'doc>) -> Result<LockSource, Reported> {
    if template::is_computed(field.node) {
        let read = |context: &mut Context<'doc>| template::value(field, context);
        return context
            .seeing(Visible::Start, read)
            .map(LockSource::Computed);
    }
    let pattern = field.string(context)?;
    match compile_lock(pattern) {
        Ok(lock) => Ok(LockSource::Literal(lock)),
        Err(message) => Err(context.error(Finding::new(Code::E518, field.span(), message))),
    }
}
