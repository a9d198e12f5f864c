//! How many runs with the same value run at the same time: `concurrency` (W84).

use super::{Bounds, Context, Field, Reported, context::Visible, field::or_default, template};
use crate::{Code, tree::Kind};
use flotilla_engine::definition::{ConcurrencyLimit, OnLimit};
use flotilla_engine::ids::ConcurrencyName;
use flotilla_engine::limits::{CONCURRENCY_LIMIT_MAX, CONCURRENCY_LIMITS_MAX};

const LIMIT: Bounds = Bounds::new(1, CONCURRENCY_LIMIT_MAX as i64, Code::E100);
const LIMIT_DEFAULT: u32 = 1;
const ON_LIMIT: [(&str, OnLimit); 4] = [
    ("queue", OnLimit::Queue),
    ("reject", OnLimit::Reject),
    ("existing", OnLimit::Existing),
    ("cancel_oldest", OnLimit::CancelOldest),
];

/// Reads one limit, or a list of them.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Vec<ConcurrencyLimit>, Reported> {
    if !matches!(field.node.kind, Kind::Sequence(_)) {
        return Ok(vec![limit(field, context)?]);
    }
    let items = field.items_at_most(CONCURRENCY_LIMITS_MAX, context)?;
    let limits: Vec<_> = items.iter().map(|item| limit(item, context)).collect();
    limits.into_iter().collect()
}

fn limit<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<ConcurrencyLimit, Reported> {
    let mut fields = field.fields(context)?;
    let key = fields.require(&["key"], context);
    let limit = fields.take("limit", context);
    let name = fields.take("name", context);
    let on_limit = fields.take("onLimit", context);
    let known = fields.finish(context);
    let key = key.and_then(|field| {
        context.seeing(Visible::Start, |context| {
            template::value_of_run(&field, context)
        })
    });
    let limit = or_default(limit, LIMIT_DEFAULT, |field| field.whole(LIMIT, context));
    let name = name
        .map(|field| field.name(ConcurrencyName::new, context))
        .transpose();
    let on_limit = or_default(on_limit, OnLimit::default(), |field| {
        field.word(&ON_LIMIT, context)
    });
    known?;
    Ok(ConcurrencyLimit {
        key: key?,
        limit: limit?,
        name: name?,
        on_limit: on_limit?,
    })
}
