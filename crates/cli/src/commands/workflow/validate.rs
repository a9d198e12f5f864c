//! `flo workflow validate`.

use super::findings::{count_of, refusal};
use crate::definition_source::DefinitionSource;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_dsl::Finding;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo workflow validate -f order.yaml
  flo workflow validate -o json -f -

Exit codes: 0 valid, possibly with warnings; 3 an error was found, including invalid YAML; 2 the file
cannot be read or is not text.";

/// Validate a definition without a server
///
/// Prints every finding on stdout, errors first. Warnings do not make a definition invalid. Only
/// `create` can report what depends on the server's state, such as an unregistered action (E507).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Validate {
    /// Definition file, YAML or JSON; - reads stdin
    #[arg(short, long, value_name = "FILE")]
    file: String,
}

#[derive(Debug, Serialize)]
struct ValidationView<'a> {
    valid: bool,
    findings: &'a [Finding],
}

impl Validate {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let source = DefinitionSource::read(&self.file)?;
        let parsed = flotilla_dsl::parse(&source.text);
        let view = ValidationView {
            valid: !parsed.is_refused(),
            findings: &parsed.findings,
        };
        session.output.value(&view, |view| view.text(&source))?;
        if view.valid {
            return Ok(());
        }
        Err(refusal(&source.file_name, view.findings))
    }
}

impl ValidationView<'_> {
    fn text(&self, source: &DefinitionSource) -> String {
        let name = &source.file_name;
        let findings = flotilla_dsl::render(self.findings, &source.text, name);
        match (self.valid, self.findings.len()) {
            (true, 0) => format!("{name} is valid"),
            (true, count) => format!(
                "{findings}\n{name} is valid, with {}",
                count_of(count, "warning")
            ),
            (false, _) => findings,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: Expect) -> bool {
        let source = DefinitionSource {
            file_name: "order.yaml".to_owned(),
            text: text.to_owned(),
        };
        let parsed = flotilla_dsl::parse(&source.text);
        let view = ValidationView {
            valid: !parsed.is_refused(),
            findings: &parsed.findings,
        };
        let json = serde_json::to_string(&view).expect("printable");
        expected.assert_eq(&format!("{json}\n{}", view.text(&source)));
        view.valid
    }

    #[test]
    fn a_valid_definition_is_called_so() {
        let text = "kind: Workflow\nname: a\nversion: \"1\"\nstart:\n  run: \"@actions/b\"\n  transitions: {success: flo.Completed, failure: flo.Failed}\n";
        assert!(check(
            text,
            expect![[r#"
            {"valid":true,"findings":[]}
            order.yaml is valid"#]]
        ));
    }

    #[test]
    fn a_bad_definition_is_shown_with_its_place() {
        assert!(!check(
            "kind: Workflow\nname: a\nversion: \"1\"\n",
            expect![[r#"
                {"valid":false,"findings":[{"code":"E103","severity":"error","message":"expected a start step at the top level, but it is missing","line":1,"column":1,"hint":"add `start:` with `run:` or `waitForSignal:`, or make `steps:` a list"}]}
                error[E103]: expected a start step at the top level, but it is missing
                 --> order.yaml:1:1
                  |
                1 | kind: Workflow
                  | ^
                  = hint: add `start:` with `run:` or `waitForSignal:`, or make `steps:` a list
            "#]]
        ));
    }
}
