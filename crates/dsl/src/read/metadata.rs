//! The top-level keys that describe the workflow as a whole (W0, W4, W5).

use super::{
    Bounds, Context, Field, Fields, Reported, duration,
    field::or_default,
    inputs::{self, Input},
    retry_run,
};
use crate::{
    Code, Finding,
    schema::{InputSchema, SchemaInvalid},
    tree::{Kind, compact},
};
use flotilla_engine::{
    definition::{Idempotency, RunRetry},
    ids::{Namespace, WorkflowName, WorkflowVersion},
    limits,
};

/// The only kind of document.
const KIND: &str = "Workflow";
/// The bounds of counts of steps (W78).
const STEPS: Bounds = Bounds::new(1, limits::STEPS_COUNTED_MAX as i64, Code::E100);

/// The values of the top-level keys.
pub(super) struct Metadata {
    pub(super) name: WorkflowName,
    pub(super) version: WorkflowVersion,
    pub(super) description: Option<String>,
    pub(super) metadata: Option<String>,
    pub(super) namespace: Option<Namespace>,
    pub(super) idempotency: Idempotency,
    pub(super) retention_ms: Option<u64>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) max_steps: Option<u32>,
    pub(super) loop_warn_after: u32,
    pub(super) handler_timeout_ms: u64,
    pub(super) retry_run: Option<RunRetry>,
    pub(super) input: Input,
}

/// Takes and reads the keys.
pub(super) fn read<'doc>(
    fields: &mut Fields<'doc>,
    context: &mut Context<'doc>,
) -> Result<Metadata, Reported> {
    let kind = kind(fields, context);
    let name = name(fields, context);
    let version = filled(fields, "version", Code::E102, context)
        .and_then(|(field, _)| field.name(WorkflowVersion::new, context));
    let description = fields.take("description", context);
    let description = description
        .map(|field| field.string(context).map(str::to_owned))
        .transpose();
    let metadata = fields.take("metadata", context);
    let metadata = metadata.map(|field| kept(&field, context)).transpose();
    let namespace = fields.take("namespace", context);
    let namespace = namespace
        .map(|field| field.name(Namespace::new, context))
        .transpose();
    let idempotency = fields.take("idempotency", context);
    let idempotency = idempotency
        .map(|field| field.word(&IDEMPOTENCIES, context))
        .transpose();
    let retention = fields.take("retention_ms", context);
    let retention = retention
        .map(|field| field.whole(Bounds::duration(1, Code::E100), context))
        .transpose();
    let timeout = fields.take("timeout", context);
    let timeout_ms = fields.take("timeoutMs", context);
    let timeout_ms = duration::either(timeout.as_ref(), timeout_ms.as_ref(), 1, context);
    let handler_timeout = fields.take("handlerTimeout", context);
    let handler_timeout_ms = fields.take("handlerTimeoutMs", context);
    let handler_timeout_ms = duration::either(
        handler_timeout.as_ref(),
        handler_timeout_ms.as_ref(),
        1,
        context,
    );
    let max_steps = fields.take("maxSteps", context);
    let max_steps = max_steps
        .map(|field| field.whole(STEPS, context))
        .transpose();
    let loop_warn_after = fields.take("loopWarnAfter", context);
    let loop_warn_after = or_default(loop_warn_after, limits::LOOP_WARN_AFTER_DEFAULT, |field| {
        field.whole(STEPS, context)
    });
    let retry_run = fields.take("retryRun", context);
    let retry_run = retry_run
        .map(|field| retry_run::read(&field, context))
        .transpose();
    let input = input(fields, context);
    kind?;
    Ok(Metadata {
        name: name?,
        version: version?,
        description: description?,
        metadata: metadata?,
        namespace: namespace?,
        idempotency: idempotency?.unwrap_or_default(),
        retention_ms: retention?,
        timeout_ms: timeout_ms?,
        max_steps: max_steps?,
        loop_warn_after: loop_warn_after?,
        handler_timeout_ms: handler_timeout_ms?.unwrap_or(limits::HANDLER_MS_DEFAULT),
        retry_run: retry_run?,
        input: input?,
    })
}

/// Reads what is only kept.
fn kept<'doc>(field: &Field<'doc>, context: &mut Context<'doc>) -> Result<String, Reported> {
    let text = compact(field.node);
    let bytes_max = limits::DEFINITION_METADATA_BYTES_MAX;
    if text.len() > bytes_max {
        let message = format!(
            "expected {} to have at most {bytes_max} bytes, but it has {}",
            field.place,
            text.len()
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(text)
}

const IDEMPOTENCIES: [(&str, Idempotency); 3] = [
    ("none", Idempotency::None),
    ("optional", Idempotency::Optional),
    ("required", Idempotency::Required),
];

fn kind<'doc>(fields: &mut Fields<'doc>, context: &mut Context<'doc>) -> Result<(), Reported> {
    let (field, text) = filled(fields, "kind", Code::E108, context)?;
    if text == KIND {
        return Ok(());
    }
    let finding = field.mismatch_finding(Code::E108, &format!("`{KIND}`"));
    Err(context.error(finding))
}

fn name<'doc>(
    fields: &mut Fields<'doc>,
    context: &mut Context<'doc>,
) -> Result<WorkflowName, Reported> {
    let (field, text) = filled(fields, "name", Code::E101, context)?;
    if text.len() > limits::NAME_BYTES_MAX {
        let message = format!(
            "expected name to be at most {} bytes, but it is {}",
            limits::NAME_BYTES_MAX,
            text.len()
        );
        return Err(context.error(Finding::new(Code::E101, field.span(), message)));
    }
    field.name(WorkflowName::new, context)
}

/// A required, non-empty string, with the code to report otherwise.
fn filled<'doc>(
    fields: &mut Fields<'doc>,
    key: &'static str,
    code: Code,
    context: &mut Context<'doc>,
) -> Result<(Field<'doc>, &'doc str), Reported> {
    let Some(field) = fields.take(key, context) else {
        let message = format!("expected a {key} at the top level, but it is missing");
        let finding = Finding::new(code, fields.span, message);
        let finding = if key == "kind" {
            finding.hint(format!("add `kind: {KIND}`"))
        } else {
            finding
        };
        return Err(context.error(finding));
    };
    let is_empty = match &field.node.kind {
        Kind::Null => true,
        Kind::String(text) => text.is_empty(),
        _ => false,
    };
    if is_empty {
        let message = format!("expected a {key} at the top level, but it is empty");
        return Err(context.error(Finding::new(code, field.span(), message)));
    }
    let text = field.string(context)?;
    Ok((field, text))
}

/// The `input` block, or the `inputs` that it can be written as (W4, W68).
fn input<'doc>(fields: &mut Fields<'doc>, context: &mut Context<'doc>) -> Result<Input, Reported> {
    let schema = fields.take("input", context);
    let inputs = fields.take("inputs", context);
    match (schema, inputs) {
        (None, None) => Ok(Input::default()),
        (Some(field), None) => Ok(Input {
            schema: Some(json_schema(&field, context)?),
            defaults: None,
            is_declared: false,
        }),
        (None, Some(field)) => inputs::read(&field, context),
        (Some(_), Some(inputs)) => {
            let message = "expected either `input` or `inputs`, but the definition has both";
            let finding = Finding::new(Code::E100, inputs.key_span, message);
            Err(context.error(finding.hint("`inputs` is a short form of a schema in `input`")))
        }
    }
}

/// Reads a JSON Schema, as compact JSON text (W4).
pub(super) fn json_schema<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<String, Reported> {
    let node = field.json(None, context)?;
    if !matches!(node.kind, Kind::Mapping(_) | Kind::Bool(_)) {
        return Err(field.mismatch(Code::E100, "a JSON Schema", context));
    }
    let text = compact(&node);
    match InputSchema::compile(&text) {
        Ok(_) => Ok(text),
        Err(SchemaInvalid { path, message }) => {
            let span = node
                .at_pointer(&path)
                .map_or(field.span(), |part| part.span);
            let message = format!(
                "expected {} to be a JSON Schema, but {message}",
                field.place
            );
            let finding = Finding::new(Code::E100, span, message);
            Err(context
                .error(finding.hint("JSON Schema 2020-12, without references to other documents")))
        }
    }
}
