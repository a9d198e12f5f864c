//! Ended runs are deleted when their retention is over.

use crate::node::{APPROVAL, Node, refused, start_of};
use crate::wait::until;
use flotilla_api::v1;
use tonic::Code;

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_run_is_forgotten_with_its_key_and_an_open_one_is_kept() {
    let node = Node::start().await;
    node.create(&APPROVAL.replace("start:", "retention_ms: 200\nstart:"))
        .await;
    let keyed = || v1::StartRunRequest {
        idempotency_key: "k".to_owned(),
        ..start_of("approval", "")
    };
    let ended = node.run(keyed()).await.run_id;
    let open = node.run(start_of("approval", "")).await.run_id;
    node.signal(&ended, "{}").await.unwrap();
    let get = async |run_id: &str| {
        let request = v1::GetRunRequest {
            run_id: run_id.to_owned(),
            ..Default::default()
        };
        node.workflows().get_run(request).await
    };
    let forgotten = until("the run to be forgotten", async || {
        Some(get(&ended).await).filter(Result::is_err)
    })
    .await;
    let missing = (Code::NotFound, "run_not_found".to_owned());
    assert_eq!(refused(forgotten), missing);
    let request = v1::ListRunsRequest::default();
    let listed = node.workflows().list_runs(request).await.unwrap();
    let listed: Vec<String> = listed
        .into_inner()
        .items
        .into_iter()
        .map(|row| row.run_id)
        .collect();
    assert_eq!(listed, [open]);
    let anew = node.run(keyed()).await;
    assert!(!anew.existing && anew.run_id != ended);
}
