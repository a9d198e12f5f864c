//! The conformance cases of the CEL specification (W64): README.md beside this file.
//!
//! Each case passes, or is listed in `exceptions` with the reason for which it does not.

mod exceptions;
mod literal;

use exceptions::{EXCEPTIONS, Exception, Reason};
use flotilla_dsl::expression::{Names, Resolved, UnknownName, compile, with_stack};
use flotilla_engine::expression::{Meter, Node, Stop, Value, Variables, evaluate};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;

/// The files of cases.
const FILES: [(&str, &str); 14] = [
    ("basic", include_str!("basic.jsonl")),
    ("comparisons", include_str!("comparisons.jsonl")),
    ("conversions", include_str!("conversions.jsonl")),
    ("fields", include_str!("fields.jsonl")),
    ("fp_math", include_str!("fp_math.jsonl")),
    ("integer_math", include_str!("integer_math.jsonl")),
    ("lists", include_str!("lists.jsonl")),
    ("logic", include_str!("logic.jsonl")),
    ("macros", include_str!("macros.jsonl")),
    ("namespace", include_str!("namespace.jsonl")),
    ("parse", include_str!("parse.jsonl")),
    ("plumbing", include_str!("plumbing.jsonl")),
    ("string", include_str!("string.jsonl")),
    ("timestamps", include_str!("timestamps.jsonl")),
];

/// A line of such a file.
#[derive(Deserialize)]
struct Case {
    section: String,
    name: String,
    expr: String,
    #[serde(default)]
    bindings: BTreeMap<String, serde_json::Value>,
    value: Option<serde_json::Value>,
    error: Option<String>,
}

/// The variables of a case, in the order of their positions.
struct Bindings(Vec<(String, Value)>);

impl Bindings {
    fn of(case: &Case) -> Self {
        let bindings = case.bindings.iter();
        Self(
            bindings
                .map(|(name, value)| (name.clone(), literal::value(value)))
                .collect(),
        )
    }
}

/// The names of the variables of a case, in the order of their positions.
struct BindingNames(Vec<String>);

impl Names for BindingNames {
    fn resolve(&mut self, segments: &[&str]) -> Result<Option<Resolved>, UnknownName> {
        // The longest name counts.
        for segments_count in (1..=segments.len()).rev() {
            let name = segments[..segments_count].join(".");
            if let Some(position) = self.0.iter().position(|known| *known == name) {
                let position = u16::try_from(position).expect("few bindings");
                return Ok(Some(Resolved {
                    node: Node::Variable(position),
                    segments: segments_count,
                }));
            }
        }
        Ok(None)
    }

    fn first_segments(&self) -> Vec<String> {
        self.0.clone()
    }
}

impl Variables for Bindings {
    type Error = Infallible;

    fn variable(&mut self, position: u16, _: &mut Meter) -> Result<Value, Stop<Infallible>> {
        Ok(self.0[usize::from(position)].1.clone())
    }
}

/// What a case gives here.
fn outcome(case: &Case) -> Result<Value, String> {
    let mut bindings = Bindings::of(case);
    let names = bindings.0.iter().map(|(name, _)| name.clone());
    let mut names = BindingNames(names.collect());
    let compiled = with_stack(|| compile(&case.expr, &mut names))
        .map_err(|error| format!("refused: {}: {}", error.code, error.message))?;
    let value = evaluate(&compiled.expression, &mut bindings, &mut Meter::default());
    value.map_err(|stop| match stop {
        Stop::Failed(failure) => format!("failed: {failure}"),
        Stop::Variables(never) => match never {},
    })
}

/// Whether a case passes; the error shows what it gave.
fn check(case: &Case) -> Result<(), String> {
    let outcome = outcome(case);
    match (&case.value, &case.error, &outcome) {
        (None, Some(_), Err(_)) => Ok(()),
        (Some(expected), None, Ok(value)) if literal::shown(value) == literal::normal(expected) => {
            Ok(())
        }
        _ => {
            let shown = outcome.map_or_else(
                |failure| failure,
                |value| literal::shown(&value).to_string(),
            );
            Err(shown)
        }
    }
}

fn exception(file: &str, case: &Case) -> Option<&'static Exception> {
    EXCEPTIONS.iter().find(|exception| {
        (exception.file, exception.section) == (file, case.section.as_str())
            && exception.names.contains(&case.name.as_str())
    })
}

#[test]
fn every_case_passes_or_is_an_exception() {
    let mut report = String::new();
    let mut by_reason: BTreeMap<Option<Reason>, usize> = BTreeMap::new();
    for (file, text) in FILES {
        for line in text.lines() {
            let case: Case = serde_json::from_str(line).expect(line);
            let exception = exception(file, &case);
            let reason = exception.map(|exception| exception.reason);
            *by_reason.entry(reason).or_default() += 1;
            let at = format!("{file}/{}/{}", case.section, case.name);
            match (check(&case), exception) {
                (Ok(()), None) | (Err(_), Some(_)) => {}
                (Ok(()), Some(_)) => writeln!(report, "{at}: passes, but is an exception").unwrap(),
                (Err(shown), None) => {
                    let expected = case
                        .value
                        .map_or(case.error.unwrap_or_default(), |v| v.to_string());
                    writeln!(
                        report,
                        "{at}: {} => {shown}, expected {expected}",
                        case.expr
                    )
                    .unwrap();
                }
            }
        }
    }
    assert!(report.is_empty(), "\n{report}");
    // As README.md beside this file says.
    let expected = [
        (None, 1_129),
        (Some(Reason::CheckedAtCreate), 18),
        (Some(Reason::ComparedExactly), 4),
        (Some(Reason::NamedTimeZone), 5),
        (Some(Reason::NotFinite), 68),
    ];
    assert_eq!(by_reason.into_iter().collect::<Vec<_>>(), expected);
}
