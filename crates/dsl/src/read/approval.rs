//! The `approval` block (W61).

use super::{Bounds, Context, Field, Reported, duration, graph::Outline, template, wait};
use crate::reference::{Reference, ReferenceTarget};
use crate::{Code, tree::Kind};
use flotilla_engine::definition::{ApprovalStep, Part, Template};
use flotilla_engine::ids::Approver;
use flotilla_engine::limits::APPROVERS_MAX;
use std::collections::BTreeSet;

/// Reads the block.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    outline: &Outline<'doc>,
    context: &mut Context<'doc>,
) -> Result<ApprovalStep, Reported> {
    let mut fields = field.fields(context)?;
    let approvers = fields.take("approvers", context);
    let quorum = fields.take("quorum", context);
    let timeout = fields.take("timeout", context);
    let timeout_ms = fields.take("timeoutMs", context);
    let known = fields.finish(context);
    if timeout.is_none() && timeout_ms.is_none() {
        wait::lint_no_timeout(field.key_span, "timeout", outline, context);
    }
    let count_max = i64::try_from(APPROVERS_MAX).expect("a small number");
    let count = quorum
        .as_ref()
        .map(|field| field.whole(Bounds::new(1, count_max, Code::E100), context))
        .transpose();
    let timeout_ms = duration::of_wait(timeout.as_ref(), timeout_ms.as_ref(), 1, context);
    let approvers = match &approvers {
        Some(approvers) => read_approvers(approvers, context),
        None => Ok(Approvers::everyone()),
    };
    known?;
    let (approvers, count) = (approvers?, count?.unwrap_or(1));
    if let (Some(quorum), Some(users)) = (&quorum, approvers.users_count)
        && users < usize::from(count)
    {
        let message = format!(
            "expected {} to be at most the number of approvers, which is {users}",
            quorum.place
        );
        return Err(context.malformed(quorum.span(), message));
    }
    Ok(ApprovalStep {
        approvers: approvers.template,
        quorum: count,
        timeout_ms: timeout_ms?,
    })
}

struct Approvers {
    template: Template,
    /// The number of approvers, if all of them are known to be different users.
    users_count: Option<usize>,
}

impl Approvers {
    fn everyone() -> Self {
        let template = Template {
            parts: vec![Part::Literal("[]".to_owned())],
        };
        Self {
            template,
            users_count: None,
        }
    }
}

/// Reads a list of approvers, or a value that gives one.
fn read_approvers<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Approvers, Reported> {
    let users_count = match &field.node.kind {
        Kind::Sequence(_) => users_count(field, context)?,
        _ if template::is_computed(field.node) => None,
        _ => {
            let finding =
                field.mismatch_finding(Code::E100, "a list of approvers, a path or `cel`");
            return Err(context.error(finding));
        }
    };
    let template = template::value(field, context)?;
    let is_anyone = matches!(&template.parts[..], [Part::Literal(text)] if text == "[]");
    if !is_anyone {
        context.references.push(Reference {
            target: ReferenceTarget::Approvers,
            span: field.span(),
        });
    }
    Ok(Approvers {
        template,
        users_count,
    })
}

/// Checks a list of approvers; returns the number of different users, if they are the only approvers.
fn users_count<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Option<usize>, Reported> {
    let items = field.items_at_most(APPROVERS_MAX, context)?;
    let mut users = BTreeSet::new();
    let mut are_all_users = true;
    let mut result = Ok(());
    for item in &items {
        if template::is_computed(item.node) {
            are_all_users = false;
            continue;
        }
        match item.name(Approver::new, context) {
            Ok(approver) => {
                are_all_users &= approver.is_user();
                users.insert(approver);
            }
            Err(reported) => result = Err(reported),
        }
    }
    result?;
    Ok((are_all_users && !users.is_empty()).then_some(users.len()))
}
