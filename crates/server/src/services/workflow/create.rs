//! Storing a definition (W5).

use super::validate::{findings, namespace, parse};
use crate::access::CallContext;
use crate::convert::finding::Source;
use crate::errors::{Refusal, ServerCode};
use crate::faults::exercise;
use crate::request;
use flotilla_api::v1;
use flotilla_dsl::{Finding, Severity};
use flotilla_engine::{Command, CreateDefinition, reply};
use tokio::time::Instant;

/// Serves `CreateWorkflow`.
pub(super) async fn create(
    context: &CallContext,
    request: v1::CreateWorkflowRequest,
    deadline: Instant,
) -> Result<v1::CreateWorkflowResponse, Refusal> {
    let (text, parsed) = parse(request.source).await?;
    let namespace = namespace(&request.namespace, parsed.definition.as_ref())?;
    context.gateway.of(&namespace).check(deadline).await?;
    let request_id = request::request_id(&request.request_id)?;
    let Some(mut definition) = parsed.definition.clone() else {
        let source = Source::new(&request.file_name, &text);
        return Err(invalid(&source, &parsed.findings));
    };
    exercise::mark_definition(&mut definition, &text);
    let findings = findings(context, namespace.clone(), parsed, deadline).await?;
    let findings = Source::new(&request.file_name, &text).messages(findings);
    let (name, version) = (definition.name.to_string(), definition.version.to_string());
    let make_latest = request.make_latest;
    let create = CreateDefinition {
        definition,
        source: text,
        make_latest,
    };
    let body = Box::new(create);
    let command = Command {
        request_id: Some(request_id),
        scope: namespace,
        body,
    };
    let reply::DefinitionCreated {
        revision,
        is_new,
        is_latest,
    } = context.gateway.submit(command, deadline).await?;
    Ok(v1::CreateWorkflowResponse {
        name,
        version,
        revision,
        created: is_new,
        latest: is_latest,
        findings,
    })
}

/// The refusal of a definition with errors: the message quotes the first one, and the violations
/// hold all that fit.
fn invalid(source: &Source<'_>, findings: &[Finding]) -> Refusal {
    let errors: Vec<_> = findings
        .iter()
        .filter(|finding| finding.severity() == Severity::Error)
        .map(|finding| source.violation(finding))
        .collect();
    let first = errors.first().map_or_else(String::new, |first| {
        format!(": {}: {}", first.field, first.description)
    });
    let count = match errors.len() {
        1 => "an error".to_owned(),
        count => format!("{count} errors, the first of them"),
    };
    let message = format!("expected a valid definition, but it has {count}{first}");
    Refusal::new(ServerCode::DefinitionInvalid, message)
        .with_violations(errors)
        .with_hint("`flo workflow validate -f FILE` shows each error in its line")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        invalid(
            &Source::new("a.yaml", text),
            &flotilla_dsl::parse(text).findings,
        )
        .to_string()
    }

    #[test]
    fn a_refusal_tells_the_first_error_and_how_many_there_are() {
        let one = refused("kind: Workflow\nname: a\nversion: \"1\"\nstart: 3\n");
        assert!(
            one.starts_with("expected a valid definition, but it has an error: a.yaml:4:"),
            "{one}"
        );
        assert!(one.ends_with("(definition_invalid)"), "{one}");
        let many = refused("kind: Workflow\n");
        assert!(
            many.contains("3 errors, the first of them: a.yaml:1:1: error[E101]"),
            "{many}"
        );
    }
}
