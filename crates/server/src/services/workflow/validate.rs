//! Validates a definition against what is registered (W6).

use crate::access::CallContext;
use crate::convert::finding::Source;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_dsl::{Finding, Parsed, Reference, ReferenceTarget, unregistered};
use flotilla_engine::definition::Definition;
use flotilla_engine::ids::Namespace;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::{AccessMode, VersionChoice, view};
use tokio::time::Instant;

/// Serves `ValidateWorkflow`.
pub(super) async fn validate(
    context: &CallContext,
    request: v1::ValidateWorkflowRequest,
    deadline: Instant,
) -> Result<v1::ValidateWorkflowResponse, Refusal> {
    let (text, parsed) = parse(request.source).await?;
    let namespace = namespace(&request.namespace, parsed.definition.as_ref())?;
    context.gateway.of(&namespace).check(deadline).await?;
    let findings = findings(context, namespace, parsed, deadline).await?;
    let findings = Source::new(&request.file_name, &text).messages(findings);
    Ok(v1::ValidateWorkflowResponse { findings })
}

/// Parses a definition's text on a blocking thread.
pub(super) async fn parse(text: String) -> Result<(String, Parsed), Refusal> {
    let parse = move || {
        let parsed = flotilla_dsl::parse(&text);
        (text, parsed)
    };
    tokio::task::spawn_blocking(parse)
        .await
        .map_err(|error| Refusal::internal(format!("the definition's check failed: {error}")))
}

/// The definition's namespace: the request's, otherwise the definition's own, otherwise `default`.
pub(super) fn namespace(
    request: &str,
    definition: Option<&Definition>,
) -> Result<Namespace, Refusal> {
    let own = definition.and_then(|definition| definition.namespace.clone());
    match own {
        Some(own) if request.is_empty() => Ok(own),
        Some(_) | None => request::namespace(request),
    }
}

/// All findings, including those that only a server can give (E507, E512): errors first.
pub(super) async fn findings(
    context: &CallContext,
    namespace: Namespace,
    parsed: Parsed,
    deadline: Instant,
) -> Result<Vec<Finding>, Refusal> {
    let Parsed {
        definition,
        mut findings,
        references,
    } = parsed;
    let is_outside = |reference: &Reference| {
        !definition
            .as_ref()
            .is_some_and(|definition| names_itself(definition, reference))
    };
    let references: Vec<Reference> = references.into_iter().filter(is_outside).collect();
    if !references.is_empty() {
        let gateway = context.gateway.of(&namespace);
        let look_up = move |reader: &dyn Reader| missing(reader, &namespace, &references);
        findings.extend(
            gateway
                .scan(Freshness::Linearizable, deadline, look_up)
                .await?,
        );
    }
    findings.sort_by_key(|finding| (finding.severity(), finding.span, finding.code));
    Ok(findings)
}

/// Whether a definition's child workflow is the workflow itself.
fn names_itself(definition: &Definition, reference: &Reference) -> bool {
    match &reference.target {
        ReferenceTarget::Action(_)
        | ReferenceTarget::Stream { .. }
        | ReferenceTarget::Approvers => false,
        ReferenceTarget::Workflow { name, version } => {
            let is_version = version
                .as_ref()
                .is_none_or(|version| *version == definition.version);
            *name == definition.name && is_version
        }
    }
}

fn missing(
    reader: &dyn Reader,
    namespace: &Namespace,
    references: &[Reference],
) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    for reference in references {
        let is_there = match &reference.target {
            ReferenceTarget::Action(name) => {
                view::action_record(reader, namespace, name)?.is_some()
            }
            ReferenceTarget::Workflow { name, version } => {
                let choice = version.clone().map(VersionChoice::Version);
                let choice = choice.unwrap_or(VersionChoice::Latest);
                view::definition_number(reader, namespace, name, &choice)?.is_some()
            }
            ReferenceTarget::Stream {
                namespace: other,
                name,
            } => view::stream(reader, other.as_ref().unwrap_or(namespace), name)?.is_some(),
            ReferenceTarget::Approvers => {
                let access = view::access(reader)?;
                access.is_some_and(|access| access.mode == AccessMode::Closed)
            }
        };
        if !is_there {
            findings.push(unregistered(reference));
        }
    }
    Ok(findings)
}
