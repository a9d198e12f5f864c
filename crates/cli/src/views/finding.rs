//! A finding of the server's validation.

use super::name;
use flotilla_client::v1;
use serde::Serialize;

/// A finding, with the fields of W6's machine-readable form.
#[derive(Debug, Serialize)]
pub(crate) struct FindingView {
    code: String,
    severity: String,
    message: String,
    line: u32,
    column: u32,
    hint: Option<String>,
    #[serde(skip)]
    file: String,
    #[serde(skip)]
    source_line: String,
}

impl FindingView {
    /// The finding for people: message, position, source line, caret, hint.
    pub(crate) fn text(&self) -> String {
        let Self {
            code,
            severity,
            message,
            ..
        } = self;
        let mut text = format!("{severity}[{code}]: {message}\n");
        let margin = " ".repeat(self.line.to_string().len());
        if self.line > 0 {
            let lead = usize::try_from(self.column.saturating_sub(1)).unwrap_or_default();
            let Self {
                file,
                line,
                column,
                source_line,
                ..
            } = self;
            text.push_str(&format!("{margin}--> {file}:{line}:{column}\n"));
            text.push_str(&format!("{margin} |\n{line} | {source_line}\n"));
            text.push_str(&format!("{margin} | {}^\n", blanks(source_line, lead)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("{margin} = hint: {hint}\n"));
        }
        text
    }
}

impl From<v1::Finding> for FindingView {
    fn from(finding: v1::Finding) -> Self {
        Self {
            severity: name(finding.severity()),
            code: finding.code,
            message: finding.message,
            line: finding.line,
            column: finding.column,
            hint: Some(finding.hint).filter(|hint| !hint.is_empty()),
            file: finding.file,
            source_line: finding.source_line,
        }
    }
}

/// The indentation of the caret: as wide as the line's first characters, whatever the width of a
/// tab.
fn blanks(line: &str, lead: usize) -> String {
    let blank = |character| if character == '\t' { '\t' } else { ' ' };
    line.chars().take(lead).map(blank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn warning(line: u32) -> FindingView {
        FindingView::from(v1::Finding {
            code: "E507".to_owned(),
            severity: v1::Severity::Warning.into(),
            message: "action \"charge\" is not registered yet".to_owned(),
            file: "order.yaml".to_owned(),
            line,
            column: 8,
            source_line: "  run: \"@actions/charge\"".to_owned(),
            hint: "flo action register charge".to_owned(),
        })
    }

    #[test]
    fn a_finding_points_at_its_place() {
        expect![[r#"
            warning[E507]: action "charge" is not registered yet
             --> order.yaml:6:8
              |
            6 |   run: "@actions/charge"
              |        ^
              = hint: flo action register charge
        "#]]
        .assert_eq(&warning(6).text());
    }

    #[test]
    fn a_finding_without_a_place_points_nowhere() {
        expect![[r#"
            warning[E507]: action "charge" is not registered yet
              = hint: flo action register charge
        "#]]
        .assert_eq(&warning(0).text());
    }

    #[test]
    fn its_machine_form_is_that_of_offline_validation() {
        expect![[r#"{"code":"E507","severity":"warning","message":"action \"charge\" is not registered yet","line":6,"column":8,"hint":"flo action register charge"}"#]]
            .assert_eq(&serde_json::to_string(&warning(6)).expect("printable"));
    }
}
