//! Refusing a definition because of findings made locally.

use crate::code::Code;
use crate::definition_source::DefinitionSource;
use crate::failure::Failure;
use crate::output::Output;
use flotilla_dsl::{Finding, Severity};

/// Prints every finding with its source line on stderr; the refusal itself only counts the errors.
pub(super) fn show_and_refuse(
    source: &DefinitionSource,
    findings: &[Finding],
    output: Output,
) -> Failure {
    output.note(&flotilla_dsl::render(
        findings,
        &source.text,
        &source.file_name,
    ));
    refusal(&source.file_name, findings)
}

/// The refusal of a definition whose findings are printed elsewhere.
pub(super) fn refusal(name: &str, findings: &[Finding]) -> Failure {
    let is_error = |finding: &&Finding| finding.severity() == Severity::Error;
    let errors = count_of(findings.iter().filter(is_error).count(), "error");
    Failure::new(
        Code::DefinitionInvalid,
        format!("expected {name} to be a valid workflow, but it has {errors}"),
    )
}

/// A count with its noun, in the singular or plural.
pub(super) fn count_of(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;

    #[test]
    fn the_refusal_counts_the_errors_and_leaves_out_the_warnings() {
        let parsed = flotilla_dsl::parse("kind: Workflow\nname: a\nversion: \"1\"\n");
        expect![[r#"
            error: expected a.yaml to be a valid workflow, but it has 1 error
        "#]]
        .assert_eq(&refusal("a.yaml", &parsed.findings).render(Format::Text));
        let text = "kind: Workflow\nstart: {run: \"@actions/b\"}\n";
        let findings = flotilla_dsl::parse(text).findings;
        assert_eq!(findings.len(), 4, "two errors, two warnings: {findings:?}");
        let failure = refusal("a.yaml", &findings);
        assert_eq!(failure.code(), Code::DefinitionInvalid.as_str());
        assert!(failure.render(Format::Text).contains("2 errors"));
    }
}
