//! `state` and `set` (W63, W66).

use super::{Context, Field, Reported, context::Visible, template};
use crate::tree::Kind;
use flotilla_engine::definition::{StateWrites, Template};
use flotilla_engine::ids::StateKey;
use flotilla_engine::limits::STATE_WRITES_MAX;

/// Reads the state that a run begins with.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Template, Reported> {
    if !matches!(field.node.kind, Kind::Mapping(_)) {
        return Err(field.mismatch(crate::Code::E100, "a mapping", context));
    }
    context.seeing(Visible::Nothing, |context| template::read(field, context))
}

/// Reads the values that a step writes.
pub(super) fn writes<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<StateWrites, Reported> {
    let entries = entries(field, context)?;
    let keys: Vec<Result<StateKey, Reported>> =
        entries.iter().map(|entry| key(entry, context)).collect();
    let object = context.seeing(Visible::Result, |context| {
        template::object(field, &entries, context)
    });
    Ok(StateWrites {
        keys: keys.into_iter().collect::<Result<_, _>>()?,
        object: object?,
    })
}

/// The entries of a mapping from keys of the state.
pub(super) fn entries<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<Field<'doc>>, Reported> {
    let entries = field.entries(context)?;
    if entries.is_empty() || entries.len() > STATE_WRITES_MAX {
        let message = format!(
            "expected {} to have 1 to {STATE_WRITES_MAX} values, but it has {}",
            field.place,
            entries.len()
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(entries)
}

/// The key of the state that an entry names.
pub(super) fn key<'doc>(
    entry: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<StateKey, Reported> {
    let key = StateKey::new(entry.key);
    key.map_err(|error| context.malformed(entry.key_span, error.to_string()))
}
