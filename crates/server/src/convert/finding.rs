//! Converts validation findings (W6) to messages and field violations.

use crate::errors::Violation;
use crate::limits::SOURCE_LINE_BYTES_MAX;
use flotilla_api::v1;
use flotilla_dsl::{Finding, Severity};

/// The file name in findings if the sender gave none.
const FILE_NAME_DEFAULT: &str = "definition";

/// A definition's text, from which findings quote lines.
pub(crate) struct Source<'a> {
    file_name: &'a str,
    lines: Vec<&'a str>,
}

impl<'a> Source<'a> {
    /// The text with the sender's file name, which may be empty.
    pub(crate) fn new(file_name: &'a str, text: &'a str) -> Self {
        let file_name = if file_name.is_empty() {
            FILE_NAME_DEFAULT
        } else {
            file_name
        };
        Self {
            file_name,
            lines: text.lines().collect(),
        }
    }

    /// Converts all findings.
    pub(crate) fn messages(&self, findings: Vec<Finding>) -> Vec<v1::Finding> {
        findings
            .into_iter()
            .map(|finding| self.message(finding))
            .collect()
    }

    /// Converts a finding to a field violation.
    pub(crate) fn violation(&self, finding: &Finding) -> Violation {
        let span = finding.span;
        Violation {
            field: format!("{}:{}:{}", self.file_name, span.line, span.column),
            description: format!(
                "{}[{}]: {}",
                finding.severity().as_str(),
                finding.code,
                finding.message
            ),
        }
    }

    fn message(&self, finding: Finding) -> v1::Finding {
        let severity = match finding.severity() {
            Severity::Error => v1::Severity::Error,
            Severity::Warning => v1::Severity::Warning,
        };
        v1::Finding {
            code: finding.code.to_string(),
            severity: severity.into(),
            message: finding.message,
            file: self.file_name.to_owned(),
            line: finding.span.line,
            column: finding.span.column,
            source_line: self.line(finding.span.line).to_owned(),
            hint: finding.hint.unwrap_or_default(),
        }
    }

    /// The text of a line, counted from 1; empty if the line is too long to quote.
    fn line(&self, number: u32) -> &'a str {
        let position = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let line = position
            .and_then(|position| self.lines.get(position))
            .copied();
        line.filter(|line| line.len() <= SOURCE_LINE_BYTES_MAX)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_where_it_is_and_quotes_the_line() {
        let text = "kind: Workflow\nname: a\nversion: \"1\"\nstart:\n  runn: x\n";
        let findings = flotilla_dsl::parse(text).findings;
        let source = Source::new("", text);
        let messages = source.messages(findings.clone());
        let position = messages
            .iter()
            .position(|message| message.line == 5)
            .unwrap();
        let message = &messages[position];
        assert_eq!(message.file, "definition");
        assert_eq!(message.source_line, "  runn: x");
        assert_eq!(message.severity(), v1::Severity::Error);
        let violation = Source::new("a.yaml", text).violation(&findings[position]);
        assert!(
            violation.field.starts_with("a.yaml:5:"),
            "{}",
            violation.field
        );
        assert!(
            violation.description.starts_with("error[E100]: "),
            "{}",
            violation.description
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out() {
        let text = format!("kind: {}\n", "x".repeat(SOURCE_LINE_BYTES_MAX));
        let findings = flotilla_dsl::parse(&text).findings;
        let messages = Source::new("", &text).messages(findings);
        assert!(
            messages
                .iter()
                .all(|message| message.source_line.is_empty())
        );
    }
}
