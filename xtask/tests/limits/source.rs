//! Reads constants with their comments from a Rust file.

use crate::expression;
use std::collections::BTreeMap;

/// One constant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) name: String,
    /// The value; a time is in milliseconds.
    pub(crate) value: u64,
    pub(crate) unit: Unit,
    /// Its comment.
    pub(crate) what: String,
}

/// The unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    Milliseconds,
    Things,
}

impl Limit {
    /// The value in a readable form.
    pub(crate) fn show(&self) -> String {
        match self.unit {
            Unit::Bytes => show(self.value, &[("MiB", 1 << 20), ("KiB", 1 << 10)], "bytes"),
            Unit::Milliseconds => show(
                self.value,
                &[
                    ("d", 86_400_000),
                    ("h", 3_600_000),
                    ("min", 60_000),
                    ("s", 1_000),
                ],
                "ms",
            ),
            Unit::Things => group(self.value),
        }
    }
}

/// The public constants of the file, in its order. `known` are the imported ones.
pub(crate) fn limits(text: &str, known: &BTreeMap<String, u64>) -> Vec<Limit> {
    let mut known = known.clone();
    let mut limits = Vec::new();
    let mut comment = String::new();
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("/// ") {
            comment.push_str(words);
            comment.push(' ');
            continue;
        }
        let comment = std::mem::take(&mut comment);
        if !line.contains("const ") || line.starts_with("const _") || line.contains(" fn ") {
            continue;
        }
        let mut declaration = line.to_owned();
        while !declaration.ends_with(';') {
            declaration.push(' ');
            declaration.push_str(lines.next().expect("a declaration ends"));
        }
        let limit = read(&declaration, comment.trim(), &known);
        known.insert(limit.name.clone(), limit.value);
        if declaration.starts_with("pub") {
            limits.push(limit);
        }
    }
    limits
}

fn read(declaration: &str, comment: &str, known: &BTreeMap<String, u64>) -> Limit {
    let (_, rest) = declaration.split_once("const ").expect("a constant");
    let (name, rest) = rest.split_once(": ").expect("a constant has a type");
    let (kind, expression) = rest.split_once(" = ").expect("a constant has a value");
    let expression = expression.trim_end_matches(';');
    let (expression, factor) = unwrap(expression);
    let value = expression::value(expression, known);
    let value =
        value.unwrap_or_else(|| panic!("expected a value, but {declaration:?} has another"));
    let unit = match kind {
        "Duration" => Unit::Milliseconds,
        _ if name.contains("_MS_") || name.ends_with("_MS") => Unit::Milliseconds,
        _ if name.contains("BYTES") => Unit::Bytes,
        _ => Unit::Things,
    };
    Limit {
        name: name.to_owned(),
        value: value * factor,
        unit,
        what: describe(comment),
    }
}

/// A comment for readers of the page: without units, which the value shows, and rule numbers.
fn describe(comment: &str) -> String {
    let mut words = String::new();
    for (index, part) in comment.split(" (").enumerate() {
        let after_rule = part.split_once(')').filter(|(bracket, _)| is_rule(bracket));
        match after_rule {
            Some((_, after)) => words.push_str(after),
            None if index == 0 => words.push_str(part),
            None => words.push_str(&format!(" ({part}")),
        }
    }
    words
        .replace(" In bytes.", "")
        .replace(" In milliseconds.", "")
        .replace("[`", "`")
        .replace("`]", "`")
        .replace('|', "\\|")
}

/// Whether a bracket names a rule, such as `W12` or `design rule 13`.
fn is_rule(bracket: &str) -> bool {
    let number = bracket
        .trim_start_matches("design rule ")
        .trim_start_matches(['W', 'A', 'E']);
    number.len() < bracket.len() && number.starts_with(|c: char| c.is_ascii_digit())
}

/// The number inside a constructor, and its factor.
fn unwrap(expression: &str) -> (&str, u64) {
    let constructors = [
        ("Duration::from_millis(", 1),
        ("Duration::from_secs(", 1_000),
        ("NonZeroUsize::new(", 1),
    ];
    for (constructor, factor) in constructors {
        if let Some(rest) = expression.strip_prefix(constructor) {
            let (inner, _) = rest.split_once(')').expect("a bracket is closed");
            return (inner, factor);
        }
    }
    (expression, 1)
}

/// The value in the largest unit without a remainder.
fn show(value: u64, units: &[(&str, u64)], smallest: &str) -> String {
    let fitting = units
        .iter()
        .find(|(_, size)| value > 0 && value.is_multiple_of(*size));
    fitting.map_or_else(
        || format!("{} {smallest}", group(value)),
        |(unit, size)| format!("{} {unit}", group(value / size)),
    )
}

/// The number with a comma between thousands.
fn group(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[test]
fn constants_are_read_with_their_comments() {
    let text = "\
/// A name.
/// It is long (W0, A1), or (maybe) not. In bytes.
pub const NAME_BYTES_MAX: usize = 3 << 10;

/// Not told.
const INNER: u64 = 2;
/// A wait.
pub(crate) const WAIT: Duration =
    Duration::from_secs(90);
/// Things.
pub const THINGS: u32 = 1_234 * INNER as u32;
const _: () = assert!(THINGS > 1);
";
    let found: Vec<(String, String, String)> = limits(text, &BTreeMap::new())
        .into_iter()
        .map(|limit| (limit.name.clone(), limit.show(), limit.what))
        .collect();
    let row =
        |name: &str, value: &str, what: &str| (name.to_owned(), value.to_owned(), what.to_owned());
    let expected = [
        row(
            "NAME_BYTES_MAX",
            "3 KiB",
            "A name. It is long, or (maybe) not.",
        ),
        row("WAIT", "90 s", "A wait."),
        row("THINGS", "2,468", "Things."),
    ];
    assert_eq!(found, expected);
}
