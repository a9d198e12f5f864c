//! Limits the parameters of functions (CONTRIBUTING.md, "Style").
//!
//! Clippy takes a destructured tuple for one parameter, and counts `self`. This rule counts the parts of the tuple,
//! and not `self`.

use crate::rust_text::{Line, lines};
use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

/// The maximum number of parameters, without `self`.
const PARAMETERS_MAX: usize = 4;

/// No signature has more lines.
const SIGNATURE_LINES_MAX: usize = 60;

#[test]
fn no_function_has_more_than_four_parameters() {
    expect_none(&sources(&[".rs"]), too_many_parameters);
}

fn too_many_parameters(source: &Source) -> Vec<Finding> {
    let lines = lines(source);
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some(start) = function_start(&line.code) else {
            continue;
        };
        let rest = lines.iter().skip(index + 1).take(SIGNATURE_LINES_MAX);
        let rest = rest.map(|line| line.code.as_str());
        let signature: Vec<&str> = std::iter::once(&line.code[start..]).chain(rest).collect();
        let count = parameters_count(&signature.join(" "));
        if count > PARAMETERS_MAX && !is_in_trait_impl(&lines[..=index]) {
            let message = format!(
                "expected at most {PARAMETERS_MAX} parameters besides `self`, but there are {count}; group what \
                 belongs together in a struct"
            );
            findings.push(source.finding(line.number, message));
        }
    }
    findings
}

/// Where the name of the function begins that the line declares.
fn function_start(code: &str) -> Option<usize> {
    let (before, after) = code.split_once("fn ")?;
    let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    let is_named = after.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (is_word && is_named).then_some(before.len() + "fn ".len())
}

/// The number of parameters of a signature, which starts with the function's name.
fn parameters_count(signature: &str) -> usize {
    let name_end = signature.find(['<', '(']);
    let mut rest = &signature[name_end.unwrap_or(signature.len())..];
    if rest.starts_with('<') {
        rest = group(rest).1;
    }
    let rest = rest.trim_start();
    if !rest.starts_with('(') {
        return 0;
    }
    split(group(rest).0).into_iter().map(parts_count).sum()
}

/// The number of parts of a parameter, or of a pattern in a tuple: 0 for `self`.
fn parts_count(parameter: &str) -> usize {
    let mut pattern = parameter.trim();
    while let Some(attribute) = pattern.strip_prefix("#[") {
        let (_, rest) = attribute.split_once(']').unwrap_or_default();
        pattern = rest.trim_start();
    }
    let pattern = pattern.trim_start_matches('&');
    if pattern.starts_with('(') {
        return split(group(pattern).0).into_iter().map(parts_count).sum();
    }
    let name = pattern.split_once(':').map_or(pattern, |(name, _)| name);
    let mut words = name.split_whitespace();
    // `number in 0..9` is an input of a property, which proptest draws.
    let is_input = words.clone().nth(1) == Some("in");
    usize::from(!is_input && words.all(|word| word != "self"))
}

/// What is inside the brackets with which the text starts, and what follows them.
fn group(text: &str) -> (&str, &str) {
    let (mut depth, mut previous) = (0, ' ');
    for (place, character) in text.char_indices() {
        depth = depth_after(depth, previous, character);
        if depth == 0 {
            return (&text[1..place], &text[place + 1..]);
        }
        previous = character;
    }
    (&text[1..], "")
}

/// The parts between the commas that are outside of all brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut previous, mut start) = (0, ' ', 0);
    let mut parts = Vec::new();
    for (place, character) in text.char_indices() {
        depth = depth_after(depth, previous, character);
        if character == ',' && depth == 0 {
            parts.push(&text[start..place]);
            start = place + 1;
        }
        previous = character;
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// How many brackets are open after the character. An arrow closes none.
fn depth_after(depth: usize, previous: char, character: char) -> usize {
    match character {
        '(' | '[' | '{' | '<' => depth + 1,
        ')' | ']' | '}' => depth.saturating_sub(1),
        '>' if !matches!(previous, '-' | '=') => depth.saturating_sub(1),
        _ => depth,
    }
}

/// Whether the last line is in the implementation of a trait, which fixes the parameters.
fn is_in_trait_impl(lines: &[Line]) -> bool {
    let indent = |line: &Line| line.code.len() - line.code.trim_start().len();
    let Some((function, before)) = lines.split_last() else {
        return false;
    };
    let is_outside = |line: &&Line| !line.code.trim().is_empty() && indent(line) < indent(function);
    let outside = before.iter().rev().filter(is_outside);
    let mut header = String::new();
    for line in outside.map(|line| line.code.trim()) {
        header = format!("{line} {header}");
        if line.starts_with("impl") || line.starts_with("unsafe impl") {
            return header.contains(" for ");
        }
        let is_continued = line == "{" || line.starts_with("where") || line.starts_with("for ");
        if !is_continued {
            return false;
        }
    }
    false
}

#[test]
fn a_planted_function_with_too_many_parameters_is_found() {
    let text = "\
fn four(a: u8, b: Vec<(u8, u8)>, c: impl Fn(u8, u8) -> u8, d: u8) {}
fn five(a: u8, b: u8, c: u8, d: u8, e: u8) {}
pub(crate) async fn of_two_pairs<T: Into<u8>, F: Fn(T, T) -> T>(
    f: F,
    (a, b): (u8, T),
    #[cfg(test)] (c, mut d): &(u8, T),
) {
}
fn nested((a, (b, c)): (u8, (u8, u8)), d: u8, e: u8) {}
fn whole(a: (u8, u8), b: [u8; 2], c: u8, d: u8) {}
type Pointer = fn(u8, u8, u8, u8, u8);
";
    let planted = Source::planted("a.rs", text);
    expect_lines(too_many_parameters, &planted, &[2, 3, 9]);
}

#[test]
fn self_and_the_functions_of_other_traits_are_not_counted() {
    let text = "\
impl A {
    fn four(&mut self, a: u8, b: u8, c: u8, d: u8) {}
    fn five(self: Box<Self>, (a, b): (u8, u8), c: u8, d: u8, e: u8) {}
}
impl<T> Verifier for A<T>
where
    T: for<'a> B<'a>,
{
    fn verify(&self, a: u8, b: u8, c: u8, d: u8, e: u8) {
        fn inner(a: u8, b: u8, c: u8, d: u8, e: u8) {}
    }
}
proptest! {
    #[test]
    fn holds(a in 0..9, b in x::y(), c in 0..9, d in 0..9, e in 0..9) {}
}
";
    let planted = Source::planted("a.rs", text);
    expect_lines(too_many_parameters, &planted, &[3, 10]);
}
