//! Parses and renders run queries (W22).

use super::line::Line;
use super::world::World;
use flotilla_engine::ids::{AttributeName, Namespace, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{AttributeValue, RunStatus};
use flotilla_engine::view::{self, Comparison, Condition, Equality, RunQuery};

const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("!=", Comparison::NotEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

/// `runs status=failed amount>=12.5 limit=2`: all pages, one a line.
pub(super) fn answer(world: &World, line: &mut Line) -> String {
    let limit = line.number("limit").unwrap_or(100);
    let mut conditions = Vec::new();
    for (name, value) in line.options() {
        conditions.push(condition(&name, Comparison::Equal, &value));
    }
    while let Some(word) = line.next() {
        let found = COMPARISONS.iter().find_map(|(sign, comparison)| {
            let (name, value) = word.split_once(sign)?;
            Some(condition(name, *comparison, value))
        });
        conditions.push(found.unwrap_or_else(|| panic!("expected a condition, but found {word}")));
    }
    let query = RunQuery { conditions };
    let (mut out, mut token) = (String::new(), None);
    loop {
        let range = view::PageRange {
            after: token.as_deref(),
            limit,
        };
        let page = view::runs(&world.store, &Namespace::default_namespace(), &query, range);
        let page = page.expect("memory does not fail");
        let row = |row: &view::RunRow| format!("{} {}", row.run_id, row.status.name());
        let rows: Vec<String> = page.items.iter().map(row).collect();
        out.push_str(&format!("[{}]\n", rows.join(", ")));
        token = page.next;
        if token.is_none() {
            return out;
        }
    }
}

fn condition(name: &str, comparison: Comparison, value: &str) -> Condition {
    let equality = match comparison {
        Comparison::NotEqual => Equality::NotEqual,
        _ => Equality::Equal,
    };
    let number = || value.parse().expect("milliseconds");
    match name {
        "workflow" => {
            let name = WorkflowName::new(value).expect("a workflow name");
            Condition::Workflow(equality, name)
        }
        "status" => {
            let mut all = RunStatus::ALL.into_iter();
            let status = all.find(|status| status.name() == value);
            Condition::Status(equality, status.expect("a status"))
        }
        "started_at" => Condition::StartedAt(comparison, number()),
        "completed_at" => Condition::CompletedAt(comparison, number()),
        name => Condition::Attribute {
            name: AttributeName::new(name).expect("an attribute name"),
            comparison,
            values: values(value),
        },
    }
}

/// Digits stand for a number and a timestamp, all else for a string.
fn values(text: &str) -> Vec<AttributeValue> {
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return vec![AttributeValue::String(text.to_owned())];
    }
    let number = AttributeValue::Number(Json::from_checked(text.to_owned()));
    let timestamp = text.parse().ok().map(AttributeValue::Timestamp);
    [Some(number), timestamp].into_iter().flatten().collect()
}
