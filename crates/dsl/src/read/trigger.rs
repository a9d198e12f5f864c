//! The `trigger` block (W41).

use super::{Bounds, Context, Field, Reported, field::or_default, metadata::Metadata};
use crate::{Code, Finding, Reference, ReferenceTarget};
use flotilla_engine::{
    definition::{GroupMode, Trigger},
    ids::{GroupName, Namespace, StreamName, WorkflowName},
    limits::{HOPS_MAX, TRIGGER_BATCH_MAX},
};

const BATCH_SIZE_DEFAULT: u32 = 1;
const BATCH_SIZE: Bounds = Bounds::new(1, TRIGGER_BATCH_MAX as i64, Code::E100);
const BATCH_TIMEOUT_MS_DEFAULT: u64 = 5_000;
const MODES: [(&str, GroupMode); 3] = [
    ("shared", GroupMode::Shared),
    ("exclusive", GroupMode::Exclusive),
    ("key_shared", GroupMode::KeyShared),
];

/// Reads the block; the workflow's name is part of the default group, and the metadata may be unknown.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    metadata: Option<&Metadata>,
    context: &mut Context<'doc>,
) -> Result<Trigger, Reported> {
    let workflow = metadata.map(|metadata| &metadata.name);
    let mut fields = field.fields(context)?;
    let stream = fields.require(&["stream"], context);
    let namespace = fields.take("namespace", context);
    let group = fields.take("consumer_group", context);
    let mode = fields.take("mode", context);
    let size = fields.take("batch_size", context);
    let timeout = fields.take("batch_timeout_ms", context);
    let known = fields.finish(context);
    let source = stream.and_then(|stream| source(&stream, namespace, context));
    let consumer_group = match group {
        Some(group) => group.name(GroupName::new, context),
        None => default_group(workflow, field, context),
    };
    let consumption = or_default(mode, GroupMode::default(), |field| mode_of(&field, context));
    let batch_size = or_default(size, BATCH_SIZE_DEFAULT, |field| {
        let size = field.whole(BATCH_SIZE, context)?;
        let is_declared = metadata.is_some_and(|metadata| metadata.input.is_declared);
        if size > BATCH_SIZE_DEFAULT && is_declared {
            let message = format!(
                "expected {} to be 1 beside `inputs`, since the input of a batch is an array",
                field.place
            );
            let finding = Finding::new(Code::E100, field.span(), message);
            return Err(context.error(finding.hint("use `input` with a JSON Schema instead")));
        }
        Ok(size)
    });
    let batch_timeout_ms = or_default(timeout, BATCH_TIMEOUT_MS_DEFAULT, |field| {
        field.whole(Bounds::duration(1, Code::E100), context)
    });
    known?;
    let (stream, namespace) = source?;
    Ok(Trigger {
        stream,
        namespace,
        consumer_group: consumer_group?,
        consumption: consumption?,
        batch_size: batch_size?,
        batch_timeout_ms: batch_timeout_ms?,
    })
}

/// The mode of the trigger's group. The trigger is the only consumer of its group and starts the runs of a partition in
/// order, so it keeps in each mode what `exclusive` and `key_shared` promise.
fn mode_of<'doc>(field: &Field<'doc>, context: &mut Context<'doc>) -> Result<GroupMode, Reported> {
    let mode = field.word(&MODES, context)?;
    if mode != GroupMode::default() {
        let hint =
            "leave it out: the runs of a partition start in the order of its records in every mode";
        field.warn_without_effect(
            "on a trigger, which is the only consumer of its group",
            hint,
            context,
        );
    }
    Ok(mode)
}

/// The stream that it consumes, which only a server can look up.
fn source<'doc>(
    stream: &Field<'doc>,
    namespace: Option<Field<'doc>>,
    context: &mut Context<'doc>,
) -> Result<(StreamName, Option<Namespace>), Reported> {
    let name = stream.name(StreamName::new, context);
    let namespace = namespace.map(|field| field.name(Namespace::new, context));
    let (name, namespace) = (name?, namespace.transpose()?);
    context.references.push(Reference {
        target: ReferenceTarget::Stream {
            namespace: namespace.clone(),
            name: name.clone(),
        },
        span: stream.span(),
    });
    Ok((name, namespace))
}

/// Warns of steps that append to the stream of the workflow's own trigger (E523).
pub(super) fn warn_emits(
    trigger: &Trigger,
    namespace: Option<&Namespace>,
    context: &mut Context<'_>,
) {
    if trigger.namespace.is_some() && trigger.namespace.as_ref() != namespace {
        return;
    }
    let own = std::mem::take(&mut context.emitted).into_iter();
    for (stream, span) in own.filter(|(stream, _)| *stream == trigger.stream) {
        let message =
            format!("each record that this step appends to \"{stream}\" starts another run");
        let finding = Finding::new(Code::E523, span, message);
        context.warn(finding.hint(format!(
            "append to another stream; the trigger refuses records with more than {HOPS_MAX} hops"
        )));
    }
}

/// `wf-{workflow}`, which is too long if the workflow's name has nearly the maximum length.
fn default_group<'doc>(
    workflow: Option<&WorkflowName>,
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<GroupName, Reported> {
    let workflow = workflow.map_or("unknown", WorkflowName::as_str);
    GroupName::new(format!("wf-{workflow}")).map_err(|error| {
        context.malformed(
            field.key_span,
            format!("{} needs a consumer_group: {error}", field.place),
        )
    })
}
