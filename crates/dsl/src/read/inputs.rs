//! `inputs`: a short form of an input schema, with defaults (W68).

use super::{Context, Field, Reported};
use crate::Code;
use crate::schema::InputSchema;
use crate::tree::{Node, compact, quoted};
use flotilla_engine::limits::INPUTS_MAX;
use std::fmt::Write;

/// What a definition says of the input of its runs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Input {
    /// A JSON Schema, as compact JSON text.
    pub(super) schema: Option<String>,
    /// An object with what is filled in for inputs that lack it, as compact JSON text.
    pub(super) defaults: Option<String>,
    /// Whether it is written as `inputs`, and therefore always an object.
    pub(super) is_declared: bool,
}

/// The types that an input may have.
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "object", "array"];

/// An input that a definition declares.
struct Declared<'doc> {
    name: &'doc str,
    kind: Option<&'static str>,
    is_required: bool,
    default: Option<&'doc Node>,
    description: Option<&'doc str>,
}

/// Reads the inputs of a definition.
pub(super) fn read<'doc>(
    field: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Input, Reported> {
    let entries = field.entries(context)?;
    if let Some(first) = entries.get(INPUTS_MAX) {
        let message = format!("expected at most {INPUTS_MAX} inputs, but this is one more");
        return Err(context.malformed(first.key_span, message));
    }
    let declared: Vec<Result<Declared<'doc>, Reported>> = entries
        .iter()
        .map(|entry| declared(entry, context))
        .collect();
    let declared: Vec<Declared<'doc>> = declared.into_iter().collect::<Result<_, _>>()?;
    let schema = schema(&declared);
    if let Err(error) = InputSchema::compile(&schema) {
        let message = format!(
            "expected {} to make a JSON Schema, but {error}",
            field.place
        );
        return Err(context.malformed(field.span(), message));
    }
    Ok(Input {
        schema: Some(schema),
        defaults: defaults(&declared),
        is_declared: true,
    })
}

fn declared<'doc>(
    entry: &Field<'doc>,
    context: &mut Context<'doc>,
) -> Result<Declared<'doc>, Reported> {
    let mut fields = entry.fields(context)?;
    let words = TYPES.map(|word| (word, word));
    let kind = fields.take("type", context);
    let kind = kind.map(|field| field.word(&words, context)).transpose();
    let required = fields.take("required", context);
    let required = required.map(|field| field.boolean(context)).transpose();
    let description = fields.take("description", context);
    let description = description.map(|field| field.string(context)).transpose();
    let default = fields.take("default", context);
    let is_required = required.map(|required| required == Some(true));
    let default = match (default, &kind, &is_required) {
        (Some(default), Ok(kind), Ok(is_required)) => {
            read_default(&default, *kind, *is_required, context).map(Some)
        }
        (Some(_), Err(reported), _) | (Some(_), _, Err(reported)) => Err(*reported),
        (None, ..) => Ok(None),
    };
    fields.finish(context)?;
    Ok(Declared {
        name: entry.key,
        kind: kind?,
        is_required: is_required?,
        default: default?,
        description: description?,
    })
}

/// Reads a default: of the input's type, and only where the input may be missing.
fn read_default<'doc>(
    field: &Field<'doc>,
    kind: Option<&'static str>,
    is_required: bool,
    context: &mut Context<'doc>,
) -> Result<&'doc Node, Reported> {
    if is_required {
        let message = format!(
            "expected {} to be left out, since the input is required",
            field.place
        );
        return Err(context.malformed(field.key_span, message));
    }
    let Some(kind) = kind else {
        return Ok(field.node);
    };
    let schema = InputSchema::compile(&of_type(kind)).expect("a schema of one type");
    let value = serde_json::from_str(&compact(field.node));
    if value.is_ok_and(|value| schema.check(&value).is_ok()) {
        return Ok(field.node);
    }
    Err(field.mismatch(Code::E100, &format!("of type `{kind}`"), context))
}

fn of_type(kind: &str) -> String {
    format!("{{\"type\":\"{kind}\"}}")
}

/// The schema of an object with these inputs, and perhaps others.
fn schema(declared: &[Declared<'_>]) -> String {
    let properties = declared.iter().map(|input| {
        let default = input.default.map(compact);
        let kind = input.kind.map(quoted);
        let description = input.description.map(quoted);
        let parts = [
            ("type", kind),
            ("description", description),
            ("default", default),
        ];
        let parts = parts
            .into_iter()
            .filter_map(|(key, value)| Some((key, value?)));
        (input.name, object(parts))
    });
    let required = declared.iter().filter(|input| input.is_required);
    let required: Vec<String> = required.map(|input| quoted(input.name)).collect();
    object([
        ("type", quoted("object")),
        ("properties", object(properties)),
        ("required", format!("[{}]", required.join(","))),
    ])
}

/// An object with the defaults; `None` without any.
fn defaults(declared: &[Declared<'_>]) -> Option<String> {
    let mut defaults = declared
        .iter()
        .filter_map(|input| Some((input.name, compact(input.default?))))
        .peekable();
    defaults.peek().is_some().then(|| object(defaults))
}

fn object<'k>(fields: impl IntoIterator<Item = (&'k str, String)>) -> String {
    let mut text = String::from("{");
    for (position, (key, value)) in fields.into_iter().enumerate() {
        let comma = if position > 0 { "," } else { "" };
        write!(text, "{comma}{}:{value}", quoted(key)).expect("a String takes every text");
    }
    text.push('}');
    text
}
