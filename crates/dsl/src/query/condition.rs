//! Reads one condition: its field determines the allowed comparisons and values.

use super::parser::Written;
use super::token::{Kind, Token};
use super::{QueryInvalid, literal};
use crate::quote::cut;
use crate::suggest::nearest;
use flotilla_engine::RunStatus;
use flotilla_engine::ids::{AttributeName, WorkflowName};
use flotilla_engine::view::{Comparison, Condition, Equality};
use std::ops::Range;

/// Reads a condition according to its field.
pub(super) fn read(text: &str, written: Written<'_>) -> Result<Condition, QueryInvalid> {
    let Written {
        field,
        comparison,
        comparison_place: place,
        value,
    } = written;
    match &text[field.place.clone()] {
        "workflow" => {
            let name = string(text, &value, "a workflow's name")?;
            let name = WorkflowName::new(name)
                .map_err(|error| QueryInvalid::new(text, value.place, error.to_string()))?;
            Ok(Condition::Workflow(
                equality(text, comparison, place)?,
                name,
            ))
        }
        "status" => {
            let status = status(text, &value)?;
            Ok(Condition::Status(
                equality(text, comparison, place)?,
                status,
            ))
        }
        "started_at" => Ok(Condition::StartedAt(
            comparison,
            literal::time(text, &value)?,
        )),
        "completed_at" => Ok(Condition::CompletedAt(
            comparison,
            literal::time(text, &value)?,
        )),
        name => {
            let name = AttributeName::new(name)
                .map_err(|error| QueryInvalid::new(text, field.place, error.to_string()))?;
            Ok(Condition::Attribute {
                name,
                comparison,
                values: literal::values(text, &value)?,
            })
        }
    }
}

fn status(text: &str, value: &Token<'_>) -> Result<RunStatus, QueryInvalid> {
    let name = string(text, value, "a status")?;
    let found = RunStatus::ALL
        .into_iter()
        .find(|status| status.name() == name);
    found.ok_or_else(|| {
        let names = RunStatus::ALL.map(RunStatus::name);
        let message = format!("expected a status, but '{}' is not one", cut(name));
        let invalid = QueryInvalid::new(text, value.place.clone(), message);
        match nearest(name, names.into_iter()) {
            Some(meant) => invalid.hint(format!("did you mean '{meant}'?")),
            None => invalid.hint(format!("one of {}", names.join(", "))),
        }
    })
}

fn string<'v>(text: &str, value: &'v Token<'_>, wanted: &str) -> Result<&'v str, QueryInvalid> {
    let Kind::String(content) = &value.kind else {
        let word = cut(&text[value.place.clone()]);
        let message = format!("expected {wanted} in single quotes, but found `{word}`");
        let invalid = QueryInvalid::new(text, value.place.clone(), message);
        return Err(invalid.hint(format!("write '{word}'")));
    };
    Ok(content)
}

fn equality(
    text: &str,
    comparison: Comparison,
    place: Range<usize>,
) -> Result<Equality, QueryInvalid> {
    match comparison {
        Comparison::Equal => Ok(Equality::Equal),
        Comparison::NotEqual => Ok(Equality::NotEqual),
        Comparison::Less
        | Comparison::LessOrEqual
        | Comparison::Greater
        | Comparison::GreaterOrEqual => {
            let found = &text[place.clone()];
            let message = format!("expected `=` or `!=` for a name, but found `{found}`");
            Err(QueryInvalid::new(text, place, message))
        }
    }
}
