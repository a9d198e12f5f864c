//! The `triggers` list and the `trigger` block (W41, W93).

use super::{
    Bounds, Context, Field, Reported, context::Visible, expression, field::or_default,
    metadata::Metadata,
};
use crate::{Code, Finding, Reference, ReferenceTarget};
use flotilla_engine::{
    definition::{GroupMode, Trigger},
    ids::{GroupName, Namespace, StreamName, WorkflowName},
    limits::{HOPS_MAX, TRIGGER_BATCH_MAX, TRIGGERS_MAX},
};

const BATCH_SIZE_DEFAULT: u32 = 1;
const BATCH_SIZE: Bounds = Bounds::new(1, TRIGGER_BATCH_MAX as i64, Code::E100);
const BATCH_TIMEOUT_MS_DEFAULT: u64 = 5_000;
const MODES: [(&str, GroupMode); 3] = [
    ("shared", GroupMode::Shared),
    ("exclusive", GroupMode::Exclusive),
    ("key_shared", GroupMode::KeyShared),
];

/// The only kind of trigger so far.
const KIND_STREAM: &str = "stream";
/// A kind that comes with the HTTP API.
const KIND_WEBHOOK: &str = "webhook";

/// Reads `triggers`, or `trigger` as a list of one; the metadata may be unknown.
pub(super) fn read_all<'doc>(
    one: Option<Field<'doc>>,
    list: Option<Field<'doc>>,
    metadata: Option<&Metadata>,
    context: &mut Context<'doc>,
) -> Result<Vec<Trigger>, Reported> {
    let items = match (one, list) {
        (None, None) => return Ok(Vec::new()),
        (Some(one), None) => vec![one],
        (None, Some(list)) => list.items_at_most(TRIGGERS_MAX, context)?,
        (Some(_), Some(list)) => {
            let message = "expected either `trigger` or `triggers`, but found both";
            let finding = Finding::new(Code::E100, list.key_span, message);
            return Err(context.error(finding.hint("move the trigger into the list")));
        }
    };
    let triggers: Vec<_> = items
        .iter()
        .map(|item| read(item, metadata, context))
        .collect();
    let namespace = metadata.and_then(|metadata| metadata.namespace.as_ref());
    let mut known: Vec<&Trigger> = Vec::new();
    for (field, trigger) in items.iter().zip(&triggers) {
        let Ok(trigger) = trigger else { continue };
        if known.iter().any(|other| is_same(other, trigger, namespace)) {
            let message = format!(
                "{} is a second trigger of stream \"{}\" in consumer group \"{}\"",
                field.place, trigger.stream, trigger.consumer_group
            );
            let finding = Finding::new(Code::E100, field.span(), message);
            return Err(context.error(finding.hint("name another `consumer_group`")));
        }
        known.push(trigger);
    }
    triggers.into_iter().collect()
}

/// Whether two triggers read the same stream through the same group: these identify a trigger.
fn is_same(one: &Trigger, other: &Trigger, own: Option<&Namespace>) -> bool {
    let namespace = |trigger: &Trigger| trigger.namespace.clone().or_else(|| own.cloned());
    (&one.stream, &one.consumer_group) == (&other.stream, &other.consumer_group)
        && namespace(one) == namespace(other)
}

/// Reads one trigger; the workflow's name is part of the default group.
fn read<'doc>(
    field: &Field<'doc>,
    metadata: Option<&Metadata>,
    context: &mut Context<'doc>,
) -> Result<Trigger, Reported> {
    let workflow = metadata.map(|metadata| &metadata.name);
    let mut fields = field.fields(context)?;
    if let Some(kind) = fields.take("kind", context) {
        check_kind(&kind, context)?;
    }
    let stream = fields.require(&["stream"], context);
    let namespace = fields.take("namespace", context);
    let group = fields.take("consumer_group", context);
    let mode = fields.take("mode", context);
    let size = fields.take("batch_size", context);
    let timeout = fields.take("batch_timeout_ms", context);
    let when = fields.take("when", context);
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
    let when = when
        .map(|field| context.seeing(Visible::Record, |context| expression::read(&field, context)));
    known?;
    let (stream, namespace) = source?;
    Ok(Trigger {
        stream,
        namespace,
        consumer_group: consumer_group?,
        consumption: consumption?,
        batch_size: batch_size?,
        batch_timeout_ms: batch_timeout_ms?,
        when: when.transpose()?,
    })
}

/// Refuses every kind but a stream.
fn check_kind<'doc>(kind: &Field<'doc>, context: &mut Context<'doc>) -> Result<(), Reported> {
    if kind.string(context)? == KIND_WEBHOOK {
        let message = format!(
            "expected {} to be \"{KIND_STREAM}\", but webhooks cannot start runs yet",
            kind.place
        );
        return Err(context.malformed(kind.span(), message));
    }
    kind.word(&[(KIND_STREAM, ())], context)
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

/// Warns of steps that append to the stream of one of the workflow's own triggers (E523).
pub(super) fn warn_emits(
    triggers: &[Trigger],
    namespace: Option<&Namespace>,
    context: &mut Context<'_>,
) {
    let is_own = |stream: &StreamName| {
        triggers.iter().any(|trigger| {
            let is_here = trigger.namespace.is_none() || trigger.namespace.as_ref() == namespace;
            is_here && *stream == trigger.stream
        })
    };
    let emitted = std::mem::take(&mut context.emitted).into_iter();
    for (stream, span) in emitted.filter(|(stream, _)| is_own(stream)) {
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
