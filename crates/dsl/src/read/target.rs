//! Targets: `@actions/…`, `@plan/…`, `@workflow/…` (E202, E203).

use super::{Context, Field, Reported};
use crate::{Code, Finding, Reference, ReferenceTarget, quote::quote};
use flotilla_engine::{
    definition::RunTarget,
    ids::{ActionName, NameInvalid, PlanName, WorkflowName, WorkflowVersion},
};

const ACTIONS: &str = "@actions/";
const PLAN: &str = "@plan/";
const WORKFLOW: &str = "@workflow/";
/// Common misspellings of the prefixes.
const SLIPS: [(&str, &str); 6] = [
    ("@action/", ACTIONS),
    ("actions/", ACTIONS),
    ("@plans/", PLAN),
    ("plan/", PLAN),
    ("@workflows/", WORKFLOW),
    ("workflow/", WORKFLOW),
];

/// Reads a step's target.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<RunTarget, Reported> {
    let text = field.string(context)?;
    if let Some(name) = text.strip_prefix(ACTIONS) {
        return action(name, field, context).map(RunTarget::Action);
    }
    if let Some(name) = text.strip_prefix(PLAN) {
        return plan(name, field, context);
    }
    if let Some(name) = text.strip_prefix(WORKFLOW) {
        return workflow(name, field, context);
    }
    let expected = "`@actions/NAME`, `@plan/NAME` or `@workflow/NAME[:VERSION]`";
    Err(mistaken(text, expected, field, context))
}

/// Reads an executor's target, which must be an action.
pub(super) fn read_action<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<ActionName, Reported> {
    let text = field.string(context)?;
    match text.strip_prefix(ACTIONS) {
        Some(name) => action(name, field, context),
        None => Err(mistaken(text, "`@actions/NAME`", field, context)),
    }
}

fn action<'doc>(
    name: &str,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<ActionName, Reported> {
    let name = ActionName::new(name).map_err(|error| malformed(&error, field, context))?;
    let target = ReferenceTarget::Action(name.clone());
    context.references.push(Reference {
        target,
        span: field.span(),
    });
    Ok(name)
}

fn plan<'doc>(
    name: &str,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<RunTarget, Reported> {
    PlanName::new(name).map_err(|error| malformed(&error, field, context))?;
    if let Some(index) = context.names.plan(name) {
        return Ok(RunTarget::Plan(index));
    }
    let candidates: Vec<&'doc str> = context.names.plans().collect();
    let nearest = context.nearest(name, candidates.into_iter());
    let message = format!("there is no plan {} in this definition", quote(name));
    Err(context.error(Finding::new(Code::E203, field.span(), message).suggest(nearest)))
}

fn workflow<'doc>(
    text: &str,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<RunTarget, Reported> {
    let (name, version) = match text.split_once(':') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    let name = WorkflowName::new(name).map_err(|error| malformed(&error, field, context))?;
    let version = version.map(WorkflowVersion::new).transpose();
    let version = version.map_err(|error| malformed(&error, field, context))?;
    let target = ReferenceTarget::Workflow {
        name: name.clone(),
        version: version.clone(),
    };
    context.references.push(Reference {
        target,
        span: field.span(),
    });
    Ok(RunTarget::Workflow { name, version })
}

fn malformed<'doc>(
    error: &NameInvalid,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Reported {
    context.error(Finding::new(Code::E202, field.span(), error.to_string()))
}

fn mistaken<'doc>(
    text: &str,
    expected: &str,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Reported {
    let finding = field.mismatch_finding(Code::E202, expected);
    let slip = SLIPS
        .iter()
        .find_map(|(slip, meant)| Some(format!("{meant}{}", text.strip_prefix(slip)?)));
    let bare = || {
        ActionName::new(text)
            .is_ok()
            .then(|| format!("{ACTIONS}{text}"))
    };
    let meant = slip
        .filter(|meant| expected.contains('[') || meant.starts_with(ACTIONS))
        .or_else(bare);
    context.error(finding.suggest(meant.as_deref()))
}
