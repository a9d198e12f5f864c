//! The `searchAttributes` block (W22).

use super::{Context, Field, Reported, field::or_default, path};
use crate::quote::quote;
use flotilla_engine::{
    definition::{AttributeKind, SearchAttribute},
    ids::AttributeName,
    limits::ATTRIBUTES_MAX,
};
use std::collections::BTreeSet;

const KINDS: [(&str, AttributeKind); 3] = [
    ("string", AttributeKind::String),
    ("number", AttributeKind::Number),
    ("timestamp", AttributeKind::Timestamp),
];

/// Reads the list, whose names must differ.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<SearchAttribute>, Reported> {
    let mut names = BTreeSet::new();
    let items = field.items_at_most(ATTRIBUTES_MAX, context)?;
    let results: Vec<Result<SearchAttribute, Reported>> = items
        .iter()
        .map(|item| attribute(item, &mut names, context))
        .collect();
    results.into_iter().collect()
}

fn attribute<'doc>(
    field: &Field<'doc>,
    names: &mut BTreeSet<&'doc str>,
    context: &mut Context<'doc>,
) -> Result<SearchAttribute, Reported> {
    let mut fields = field.fields(context)?;
    let name = fields.require(&["name"], context).and_then(|field| {
        let text = field.string(context)?;
        if !names.insert(text) {
            return Err(context.malformed(
                field.span(),
                format!("duplicate search attribute {}", quote(text)),
            ));
        }
        field.name(AttributeName::new, context)
    });
    let kind = fields.take("type", context);
    let from = fields.require(&["from", "path"], context);
    let known = fields.finish(context);
    let kind = or_default(kind, AttributeKind::default(), |field| {
        field.word(&KINDS, context)
    });
    let from = from.and_then(|field| path::read(field.string(context)?, field.span(), context));
    known?;
    Ok(SearchAttribute {
        name: name?,
        kind: kind?,
        from: from?,
    })
}
