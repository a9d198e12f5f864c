//! Renders findings as text: message, place, source line, caret, hint (W6).

use crate::{Finding, Span};
use std::fmt::Write;

/// The most that is shown of a source line, in characters: a definition may be one line of 1 MiB.
const LINE_CHARACTERS_MAX: usize = 120;
/// What stays visible before the caret when a long line is shortened, in characters.
const LEAD_CHARACTERS: usize = 60;

/// All findings as text, each with its source line, in the given order.
///
/// `source` is the text that was parsed and `file` the name to show for it.
#[must_use]
pub fn render(findings: &[Finding], source: &str, file: &str) -> String {
    let lines = split_lines(source);
    let mut text = String::new();
    for (position, finding) in findings.iter().enumerate() {
        if position > 0 {
            text.push('\n');
        }
        let line_index = usize::try_from(finding.span.line - 1).unwrap_or(usize::MAX);
        let line = lines.get(line_index).copied().unwrap_or_default();
        write_finding(&mut text, finding, line, file).expect("writing to a string cannot fail");
    }
    text
}

fn write_finding(text: &mut String, finding: &Finding, line: &str, file: &str) -> std::fmt::Result {
    let Span {
        line: number,
        column,
        ..
    } = finding.span;
    let margin = " ".repeat(number.to_string().len());
    let excerpt = Excerpt::new(line, finding.span);
    writeln!(
        text,
        "{}[{}]: {}",
        finding.severity().as_str(),
        finding.code,
        finding.message
    )?;
    writeln!(text, "{margin}--> {file}:{number}:{column}")?;
    writeln!(text, "{margin} |")?;
    writeln!(
        text,
        "{}",
        format!("{number} | {}", excerpt.line).trim_end()
    )?;
    writeln!(
        text,
        "{}",
        format!("{margin} | {}", excerpt.marks).trim_end()
    )?;
    if let Some(hint) = &finding.hint {
        writeln!(text, "{margin} = hint: {hint}")?;
    }
    Ok(())
}

/// A source line, shortened if it is long, and the carets below it.
pub(crate) struct Excerpt {
    pub(crate) line: String,
    pub(crate) marks: String,
}

impl Excerpt {
    pub(crate) fn new(line: &str, span: Span) -> Self {
        let column = usize::try_from(span.column - 1).unwrap_or(usize::MAX);
        let is_short = line.char_indices().nth(LINE_CHARACTERS_MAX).is_none();
        let first = if is_short {
            0
        } else {
            column.saturating_sub(LEAD_CHARACTERS)
        };
        let mut rest = line.chars().skip(first);
        let shown: Vec<char> = rest
            .by_ref()
            .take(LINE_CHARACTERS_MAX)
            .map(printable)
            .collect();
        let lead = column - first;
        let width = usize::try_from(span.length).unwrap_or(usize::MAX);
        let width = width.min(shown.len().saturating_sub(lead)).max(1);

        let mut excerpt = Self {
            line: String::new(),
            marks: String::new(),
        };
        if first > 0 {
            excerpt.line.push('…');
            excerpt.marks.push(' ');
        }
        excerpt.line.extend(&shown);
        if rest.next().is_some() {
            excerpt.line.push('…');
        }
        // Tabs stay tabs, so that the caret is below its character at any tab width.
        let blank = |position| {
            if shown.get(position) == Some(&'\t') {
                '\t'
            } else {
                ' '
            }
        };
        excerpt
            .marks
            .extend((0..lead.min(LINE_CHARACTERS_MAX)).map(blank));
        excerpt.marks.push_str(&"^".repeat(width));
        excerpt
    }
}

/// The character itself, unless a terminal would interpret it.
fn printable(character: char) -> char {
    let is_obeyed = character.is_control() && character != '\t';
    if is_obeyed {
        char::REPLACEMENT_CHARACTER
    } else {
        character
    }
}

/// The lines as YAML counts them: `\n`, `\r\n` and a lone `\r` each end one.
fn split_lines(source: &str) -> Vec<&str> {
    source
        .split('\n')
        .flat_map(|line| line.strip_suffix('\r').unwrap_or(line).split('\r'))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::{Code, Finding, Span};
    use expect_test::{Expect, expect};

    fn check(source: &str, span: Span, expected: Expect) {
        let finding = Finding::new(Code::E100, span, "wrong").hint("right");
        expected.assert_eq(&render(&[finding], source, "a.yaml"));
    }

    #[test]
    fn a_finding_shows_its_line_and_underlines_its_span() {
        check(
            "kind: Workflow\nname: x\n",
            Span::new(2, 7, 1),
            expect![[r#"
                error[E100]: wrong
                 --> a.yaml:2:7
                  |
                2 | name: x
                  |       ^
                  = hint: right
            "#]],
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let source = format!("{}BAD{}", "a".repeat(5_000), "b".repeat(5_000));
        let finding = Finding::new(Code::E100, Span::new(1, 5_001, 3), "wrong");
        let text = render(&[finding], &source, "a.yaml");
        assert!(
            text.lines().all(|line| line.chars().count() < 140),
            "{text}"
        );
        let caret = text.lines().nth(4).and_then(|line| line.find("^^^"));
        let bad = text
            .lines()
            .nth(3)
            .map(|line| line.chars().take_while(|&c| c != 'B').count());
        assert_eq!(caret, bad, "{text}");
    }

    #[test]
    fn control_characters_and_places_past_the_end_do_no_harm() {
        check(
            "a\u{1b}[31m\tb",
            Span::new(1, 8, 40),
            expect![[
                "error[E100]: wrong\n --> a.yaml:1:8\n  |\n1 | a\u{fffd}[31m\tb\n  |       \t^\n  = hint: right\n"
            ]],
        );
        check(
            "",
            Span::new(9, 80, 2),
            expect![[r#"
                error[E100]: wrong
                 --> a.yaml:9:80
                  |
                9 |
                  |                                                                                ^
                  = hint: right
            "#]],
        );
    }
}
