//! The conditions of a run query, and whether a run meets them.

use crate::decimal::Decimal;
use crate::definition::Definition;
use crate::ids::{AttributeName, WorkflowName};
use crate::tables::{AttributeValue, RunRecord, RunStatus};
use std::cmp::Ordering;

/// A query for runs that meet every condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// All must hold.
    pub conditions: Vec<Condition>,
}

/// One condition. Times are in milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// On the workflow's name.
    Workflow(Equality, WorkflowName),
    /// On the status.
    Status(Equality, RunStatus),
    /// On when the run started.
    StartedAt(Comparison, u64),
    /// On when the run ended; of an open run it never holds.
    CompletedAt(Comparison, u64),
    /// On a search attribute; where it is absent the condition never holds.
    Attribute {
        /// Its name.
        name: AttributeName,
        /// How it is compared.
        comparison: Comparison,
        /// The values to compare with, one for each type that the written value may have. An attribute is compared with
        /// the value of the same type; without one, the condition does not hold.
        values: Vec<AttributeValue>,
    },
}

/// `=` or `!=`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equality {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
}

/// `=`, `!=`, `<`, `<=`, `>` or `>=`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

impl Equality {
    fn holds(self, is_equal: bool) -> bool {
        match self {
            Self::Equal => is_equal,
            Self::NotEqual => !is_equal,
        }
    }
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::NotEqual => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl RunQuery {
    /// Whether the run is one that the query looks for.
    pub(super) fn holds(&self, run: &RunRecord, definition: &Definition) -> bool {
        self.conditions
            .iter()
            .all(|condition| condition.holds(run, definition))
    }
}

impl Condition {
    fn holds(&self, run: &RunRecord, definition: &Definition) -> bool {
        match self {
            Self::Workflow(equality, name) => equality.holds(definition.name == *name),
            Self::Status(equality, status) => equality.holds(run.status == *status),
            Self::StartedAt(comparison, at_ms) => comparison.holds(run.started_at_ms.cmp(at_ms)),
            Self::CompletedAt(comparison, at_ms) => run
                .completed_at_ms
                .is_some_and(|completed_ms| comparison.holds(completed_ms.cmp(at_ms))),
            Self::Attribute {
                name,
                comparison,
                values,
            } => attribute(run, definition, name).is_some_and(|found| {
                let mut orderings = values.iter().filter_map(|value| order(found, value));
                orderings.any(|ordering| comparison.holds(ordering))
            }),
        }
    }
}

fn attribute<'a>(
    run: &'a RunRecord,
    definition: &Definition,
    name: &AttributeName,
) -> Option<&'a AttributeValue> {
    let defined = (0..).zip(&definition.search_attributes);
    let mut named = defined.filter(|(_, attribute)| attribute.name == *name);
    let (position, _) = named.next()?;
    run.attributes.get(&position)
}

/// How two values of the same type compare; values of different types do not.
fn order(found: &AttributeValue, wanted: &AttributeValue) -> Option<Ordering> {
    match (found, wanted) {
        (AttributeValue::String(found), AttributeValue::String(wanted)) => Some(found.cmp(wanted)),
        (AttributeValue::Timestamp(found), AttributeValue::Timestamp(wanted)) => {
            Some(found.cmp(wanted))
        }
        (AttributeValue::Number(found), AttributeValue::Number(wanted)) => {
            let found = Decimal::parse(found.as_str())?;
            Some(found.cmp(&Decimal::parse(wanted.as_str())?))
        }
        (
            AttributeValue::String(_) | AttributeValue::Timestamp(_) | AttributeValue::Number(_),
            _,
        ) => None,
    }
}
