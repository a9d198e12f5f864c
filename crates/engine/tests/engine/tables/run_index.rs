//! Rows of the indexes of runs.

use super::{Row, row, sorted};
use crate::samples;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::{AttributeName, RunNumber};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    AttributeKey, AttributeValue, RunStatus, RunsByAttribute, RunsByCompletion, RunsByStatus,
    RunsByWorkflow,
};

pub(super) fn rows() -> Vec<Row> {
    let number = RunNumber(7);
    let failed = RunStatus::Ended(TerminalStatus::Failed);
    let value = AttributeKey::new(&decimal("-12.50"));
    vec![
        row::<RunsByWorkflow>((samples::namespace(), samples::workflow(), number), ()),
        row::<RunsByStatus>((samples::namespace(), failed, number), ()),
        row::<RunsByCompletion>((samples::namespace(), 9_000, number), ()),
        row::<RunsByAttribute>((samples::namespace(), attribute(), value, number), ()),
    ]
}

#[test]
fn attribute_rows_sort_by_type_and_value_and_then_by_run() {
    let string = |text: &str| AttributeValue::String(text.to_owned());
    let ascending = [
        string(""),
        string("\0"),
        string("\0\u{1}"),
        string("\u{1}"),
        string("a"),
        string("a\0b"),
        string("ab"),
        string("\u{10ffff}"),
        decimal("-1e3"),
        decimal("-12.5"),
        decimal("-12.49"),
        decimal("0"),
        decimal("1e-3"),
        decimal("7"),
        decimal("70"),
        AttributeValue::Timestamp(i64::MIN),
        AttributeValue::Timestamp(-1),
        AttributeValue::Timestamp(0),
        AttributeValue::Timestamp(i64::MAX),
    ];
    let keys: Vec<_> = ascending
        .iter()
        .flat_map(|value| [1, 256].map(|number| (AttributeKey::new(value), RunNumber(number))))
        .map(|(value, number)| (samples::namespace(), attribute(), value, number))
        .collect();
    sorted::<RunsByAttribute>(&keys);
    for value in &ascending {
        let (least, greatest) = AttributeKey::range(value);
        let key = AttributeKey::new(value);
        let row = |key| (samples::namespace(), attribute(), key, RunNumber(1));
        sorted::<RunsByAttribute>(&[row(least), row(key), row(greatest)]);
    }
}

#[test]
fn of_long_values_the_key_keeps_the_beginning() {
    let long = |end: &str| AttributeValue::String("ä".repeat(100) + end);
    assert_eq!(AttributeKey::new(&long("a")), AttributeKey::new(&long("b")));
}

fn attribute() -> AttributeName {
    AttributeName::new("amount").expect("a name")
}

fn decimal(text: &str) -> AttributeValue {
    AttributeValue::Number(Json::from_checked(text.to_owned()))
}
