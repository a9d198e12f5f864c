//! Definitions: creating, refusing, validating, listing, enabling and disabling them.

use crate::node::{APPROVAL, Node, refused, start_of};
use flotilla_api::v1;
use futures::future::join_all;
use tonic::Code;
use tonic_types::StatusExt;

fn named(name: &str) -> v1::GetWorkflowRequest {
    v1::GetWorkflowRequest {
        name: name.to_owned(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_is_stored_once_and_each_new_content_is_a_revision() {
    let node = Node::start().await;
    let first = node.create(APPROVAL).await;
    assert_eq!(
        (first.revision, first.created, first.latest),
        (1, true, true)
    );
    let again = node.create(APPROVAL).await;
    assert_eq!(
        (again.revision, again.created, again.latest),
        (1, false, true)
    );
    let changed = node.create(&APPROVAL.replace("600000", "700000")).await;
    assert_eq!((changed.revision, changed.created), (2, true));
    let old = node.create(APPROVAL).await;
    assert_eq!((old.revision, old.latest), (1, false));

    let workflow = node
        .workflows()
        .get_workflow(named("approval"))
        .await
        .unwrap()
        .into_inner();
    assert_eq!((workflow.version.as_str(), workflow.revision), ("1.0.0", 2));
    assert!(workflow.enabled && workflow.latest && workflow.source.contains("700000"));
    let missing = node.workflows().get_workflow(named("other")).await;
    assert_eq!(
        refused(missing),
        (Code::NotFound, "workflow_not_found".to_owned())
    );
    let request = v1::GetWorkflowRequest {
        version: "2".to_owned(),
        ..named("approval")
    };
    let missing = node.workflows().get_workflow(request).await;
    assert_eq!(
        refused(missing),
        (Code::NotFound, "version_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_definition_is_refused_with_every_finding() {
    let node = Node::start().await;
    let request = v1::CreateWorkflowRequest {
        source: APPROVAL
            .replace("flo.Completed", "nowhere")
            .replace("version", "versoin"),
        file_name: "approval.yaml".to_owned(),
        ..Default::default()
    };
    let status = node.workflows().create_workflow(request).await.unwrap_err();
    assert_eq!(status.code(), Code::FailedPrecondition);
    assert_eq!(
        status.get_details_error_info().unwrap().reason,
        "definition_invalid"
    );
    let violations = status.get_details_bad_request().unwrap().field_violations;
    let fields: Vec<_> = violations
        .iter()
        .map(|violation| violation.field.as_str())
        .collect();
    assert!(
        fields
            .iter()
            .all(|field| field.starts_with("approval.yaml:")),
        "{fields:?}"
    );
    let said = |code: &str| {
        violations
            .iter()
            .any(|violation| violation.description.contains(code))
    };
    assert!(said("error[E201]") && said("error[E102]"), "{violations:?}");

    let huge = format!("{APPROVAL}\n# {}", "x".repeat(2 << 20));
    assert_eq!(
        refused(node.try_create(&huge).await).1,
        "definition_invalid"
    );
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n".to_owned()
        + "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
        + "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n";
    assert_eq!(
        refused(node.try_create(&bomb).await).1,
        "definition_invalid"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_registered_yet_is_a_warning() {
    let node = Node::start().await;
    let source = r#"
kind: Workflow
name: order
version: "1"
start:
  run: "@actions/charge"
  transitions: {success: again, failure: flo.Failed}
steps:
  again:
    run: "@workflow/order"
    transitions: {success: flo.Completed, failure: flo.Failed}
"#;
    let codes = |findings: &[v1::Finding]| -> Vec<String> {
        findings
            .iter()
            .map(|finding| finding.code.clone())
            .collect()
    };
    let validate = || async {
        let request = v1::ValidateWorkflowRequest {
            source: source.to_owned(),
            ..Default::default()
        };
        node.workflows()
            .validate_workflow(request)
            .await
            .unwrap()
            .into_inner()
            .findings
    };
    assert_eq!(codes(&validate().await), ["E507"]);
    assert_eq!(codes(&node.create(source).await.findings), ["E507"]);
    let request = v1::RegisterActionRequest {
        name: "charge".to_owned(),
        ..Default::default()
    };
    node.actions().register_action(request).await.unwrap();
    assert_eq!(codes(&validate().await), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_goes_where_it_says_and_nowhere_else() {
    let node = Node::start().await;
    let source = APPROVAL.replace("start:", "namespace: prod\nstart:");
    node.create(&source).await;
    let in_prod = v1::GetWorkflowRequest {
        namespace: "prod".to_owned(),
        ..named("approval")
    };
    assert!(node.workflows().get_workflow(in_prod).await.is_ok());
    let request = v1::CreateWorkflowRequest {
        namespace: "test".to_owned(),
        source: source.clone(),
        ..Default::default()
    };
    let elsewhere = node.workflows().create_workflow(request).await;
    assert_eq!(
        refused(elsewhere),
        (Code::InvalidArgument, "namespace_mismatch".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn workflows_are_listed_in_pages_by_name() {
    let node = Node::start().await;
    for name in ["c", "a", "b"] {
        node.create(&APPROVAL.replace("name: approval", &format!("name: {name}")))
            .await;
    }
    let page = async |page_token: String| {
        let request = v1::ListWorkflowsRequest {
            limit: 2,
            page_token,
            ..Default::default()
        };
        let page = node
            .workflows()
            .list_workflows(request)
            .await
            .unwrap()
            .into_inner();
        let names: Vec<String> = page.items.iter().map(|item| item.name.clone()).collect();
        assert!(page.items.iter().all(|item| item.source.is_empty()));
        (names.join(","), page.next_page_token)
    };
    let (first, next) = page(String::new()).await;
    assert_eq!(first, "a,b");
    assert_eq!(page(next).await, ("c".to_owned(), String::new()));
    let request = v1::ListWorkflowsRequest {
        page_token: "x".to_owned(),
        ..Default::default()
    };
    let bad = node.workflows().list_workflows(request).await;
    assert_eq!(
        refused(bad),
        (Code::InvalidArgument, "invalid_argument".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_workflow_starts_nothing_until_it_is_enabled() {
    let node = Node::start().await;
    node.create(APPROVAL).await;
    let name = "approval".to_owned();
    let request = v1::DisableWorkflowRequest {
        name: name.clone(),
        ..Default::default()
    };
    node.workflows().disable_workflow(request).await.unwrap();
    let start = node.try_run(start_of("approval", "")).await;
    assert_eq!(
        refused(start),
        (Code::FailedPrecondition, "workflow_disabled".to_owned())
    );
    let request = v1::EnableWorkflowRequest {
        name,
        ..Default::default()
    };
    node.workflows().enable_workflow(request).await.unwrap();
    assert!(node.try_run(start_of("approval", "")).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalidation_event_reaches_more_plans_than_one_command_looks_at() {
    let node = Node::start().await;
    let plan = |number| {
        format!(
            "  p{number}:\n    executors: [{{name: a, action: \"@actions/a\"}}]\n    \
             cache: {{key: \"{{input.n}}\", invalidate_on: [refunded]}}\n"
        )
    };
    let plans: String = (0..64).map(plan).collect();
    for workflow in 10..26 {
        let source = format!(
            "kind: Workflow\nname: w{workflow}\nversion: \"1\"\nplans:\n{plans}\
             start:\n  run: \"@plan/p9\"\n  \
             transitions: {{success: flo.Completed, failure: flo.Failed}}\n"
        );
        node.create(&source).await;
    }
    // The plan of the last workflow is not in the first batch.
    node.run(start_of("w25", r#"{"n":1}"#)).await;
    let request = v1::InvalidateCacheRequest {
        event: "refunded".to_owned(),
        request_id: vec![7; 16].into(),
        ..Default::default()
    };
    for _ in 0..2 {
        let answer = node.workflows().invalidate_cache(request.clone()).await;
        assert_eq!(answer.unwrap().into_inner().plan_count, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workflow_with_many_revisions_is_deleted_in_one_call_and_its_name_is_free() {
    let node = Node::start().await;
    let sources: Vec<String> = (600_000..600_210)
        .map(|timeout_ms: u32| APPROVAL.replace("600000", &timeout_ms.to_string()))
        .collect();
    join_all(sources.iter().map(|source| node.create(source))).await;
    let other = APPROVAL.replace("approval", "other");
    node.create(&other).await;
    node.run(start_of("other", "{}")).await;
    let delete = |name: &str| {
        let request = v1::DeleteWorkflowRequest {
            name: name.to_owned(),
            ..Default::default()
        };
        let mut workflows = node.workflows();
        async move { workflows.delete_workflow(request).await }
    };
    assert_eq!(
        refused(delete("other").await),
        (Code::FailedPrecondition, "workflow_has_runs".to_owned())
    );
    assert!(delete("approval").await.unwrap().into_inner().deleted);
    assert!(!delete("approval").await.unwrap().into_inner().deleted);
    let missing = node.workflows().get_workflow(named("approval")).await;
    assert_eq!(
        refused(missing),
        (Code::NotFound, "workflow_not_found".to_owned())
    );
    assert_eq!(node.create(APPROVAL).await.revision, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn revisions_are_listed_in_pages_and_can_be_read_and_started() {
    let node = Node::start().await;
    let second = APPROVAL.replace("start:", "description: another one\nstart:");
    let other = APPROVAL.replace("version: \"1.0.0\"", "version: \"0.9.0\"");
    assert_ne!(other, APPROVAL);
    for source in [APPROVAL, &second, &other] {
        node.create(source).await;
    }
    let page = async |page_token: String| {
        let request = v1::ListRevisionsRequest {
            workflow: "approval".to_owned(),
            limit: 2,
            page_token,
            ..Default::default()
        };
        let page = node.workflows().list_revisions(request).await;
        let page = page.unwrap().into_inner();
        let items = page.items.iter().map(|item| {
            assert!(item.source.is_empty() && !item.signature.is_empty());
            let latest = if item.latest { " latest" } else { "" };
            format!("{} r{}{latest}", item.version, item.revision)
        });
        (items.collect::<Vec<_>>().join(", "), page.next_page_token)
    };
    let (first, next) = page(String::new()).await;
    assert_eq!(first, "0.9.0 r1 latest, 1.0.0 r1");
    assert_eq!(page(next).await, ("1.0.0 r2".to_owned(), String::new()));

    let revision = |version: &str, revision| v1::GetWorkflowRequest {
        version: version.to_owned(),
        revision,
        ..named("approval")
    };
    let read = async |request| node.workflows().get_workflow(request).await;
    let found = read(revision("1.0.0", 2)).await.unwrap().into_inner();
    assert_eq!(found.source, second);
    assert_eq!(
        refused(read(revision("1.0.0", 3)).await),
        (Code::NotFound, "revision_not_found".to_owned())
    );
    assert_eq!(
        refused(read(revision("2.0.0", 1)).await),
        (Code::NotFound, "version_not_found".to_owned())
    );
    assert_eq!(
        refused(read(revision("", 1)).await),
        (Code::InvalidArgument, "invalid_argument".to_owned())
    );
    let request = v1::StartRunRequest {
        workflow: "approval".to_owned(),
        version: "1.0.0".to_owned(),
        revision: 1,
        ..Default::default()
    };
    let started = node.workflows().start_run(request).await.unwrap();
    assert_eq!(started.into_inner().revision, 1);
}
