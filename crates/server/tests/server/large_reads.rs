//! Responses have a bounded size, whatever is stored (W95).

use crate::node::{Node, refused, start_of};
use flotilla_api::v1;
use prost::Message;
use tonic::{Code, Status};

const STEPS: usize = 40;
const OUTPUT_BYTES: usize = 256 << 10;
/// What a gRPC client accepts by default.
const MESSAGE_BYTES_MAX: usize = 4 << 20;

/// Steps that wait for a signal, one after the other.
fn chain() -> String {
    let step = |number| {
        format!("  - {{name: s{number}, waitForSignal: {{type: go, timeoutMs: 600000}}}}\n")
    };
    let steps: String = (0..STEPS).map(step).collect();
    format!("kind: Workflow\nname: chain\nversion: \"1\"\nsteps:\n{steps}")
}

fn output(number: usize) -> String {
    format!("[{number},\"{}\"]", "x".repeat(OUTPUT_BYTES))
}

/// A node with a run whose outputs have 10 MiB, and its id.
async fn node_with_large_run() -> (Node, String) {
    let node = Node::start().await;
    node.create(&chain()).await;
    let run_id = node.run(start_of("chain", "")).await.run_id;
    for number in 0..STEPS {
        let request = v1::SignalRunRequest {
            run_id: run_id.clone(),
            r#type: "go".to_owned(),
            payload: output(number).into(),
            ..Default::default()
        };
        node.workflows().signal_run(request).await.unwrap();
    }
    (node, run_id)
}

async fn step_output(
    node: &Node,
    run_id: &str,
    step: &str,
) -> Result<v1::GetStepOutputResponse, Status> {
    let request = v1::GetStepOutputRequest {
        run_id: run_id.to_owned(),
        step: step.to_owned(),
        ..Default::default()
    };
    Ok(node
        .workflows()
        .get_step_output(request)
        .await?
        .into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_leaves_out_outputs_that_are_read_one_by_one() {
    let (node, run_id) = node_with_large_run().await;
    // A client that has the default bound can read it.
    let run = node.status(&run_id).await;
    assert_eq!(run.status(), v1::RunStatus::Completed);
    assert!(
        run.encoded_len() < MESSAGE_BYTES_MAX,
        "{} bytes",
        run.encoded_len()
    );
    assert_eq!(run.steps.len(), STEPS);
    for number in 0..STEPS {
        let name = format!("s{number}");
        let step = &run.steps[&name];
        let found = step_output(&node, &run_id, &name).await.unwrap();
        assert_eq!((found.visit, found.outcome.as_str()), (1, "success"));
        assert_eq!(found.output.as_deref(), Some(output(number).as_bytes()));
        match step.output_omitted {
            true => assert_eq!(step.output, None),
            false => assert_eq!(step.output, found.output),
        }
    }
    assert!(run.steps["s0"].output_omitted);
    assert!(!run.steps[&format!("s{}", STEPS - 1)].output_omitted);
    assert_eq!(
        refused(step_output(&node, &run_id, "other").await),
        (Code::NotFound, "step_result_not_found".to_owned())
    );
    assert_eq!(
        refused(step_output(&node, "wfrun-7", "s0").await),
        (Code::NotFound, "run_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_large_visits_is_read_in_pages_without_a_gap() {
    let (node, run_id) = node_with_large_run().await;
    let mut request = v1::GetRunReportRequest {
        run_id: run_id.clone(),
        limit: 1_000,
        ..Default::default()
    };
    let mut steps = Vec::new();
    loop {
        let page = node.workflows().get_run_report(request.clone()).await;
        let page = page.unwrap().into_inner();
        assert!(
            page.encoded_len() < MESSAGE_BYTES_MAX,
            "{} bytes",
            page.encoded_len()
        );
        assert_eq!(page.run.is_some(), request.page_token.is_empty());
        steps.extend(page.steps.into_iter().map(|step| step.step));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            break;
        }
    }
    let expected: Vec<String> = (0..STEPS).map(|number| format!("s{number}")).collect();
    assert_eq!(steps, expected);
}
