//! Calls to a cluster whose nodes come and go.

use flotilla_client::{Client, ClientError, ClientOptions, ErrorKind, v1};

const PAGE: u32 = 100;

/// A new client that knows all nodes and calls a given one first.
pub(crate) fn client(endpoints: &[String], turn: usize) -> Client {
    let count = endpoints.len();
    let endpoints = endpoints.iter().cycle().skip(turn).take(count);
    let options = ClientOptions {
        endpoints: endpoints.cloned().collect(),
        ..ClientOptions::default()
    };
    Client::connect(options).expect("the addresses are well-formed")
}

/// Calls until there is a response. Each call has a separate timeout for a cluster that is down.
pub(crate) async fn insist<T, F>(call: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, ClientError>>,
{
    loop {
        let error = match call().await {
            Ok(answer) => return answer,
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::Retryable | ErrorKind::Unknown | ErrorKind::ConnectionFailed => {}
            ErrorKind::NotFound | ErrorKind::Usage | ErrorKind::Refused => {
                panic!("expected an answer or a reason to try again, but {error:?}")
            }
        }
    }
}

/// All runs of a workflow, page by page.
pub(crate) async fn runs(client: &Client, workflow: &str) -> Vec<v1::RunRow> {
    let mut rows = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ListRunsRequest {
            workflow: workflow.to_owned(),
            limit: PAGE,
            page_token,
            ..v1::ListRunsRequest::default()
        };
        let page = client.list_runs(request).await.expect("a page of runs");
        rows.extend(page.items);
        if page.next_page_token.is_empty() {
            return rows;
        }
        page_token = page.next_page_token;
    }
}

/// A run.
pub(crate) async fn run(client: &Client, run_id: &str) -> v1::Run {
    let request = v1::GetRunRequest {
        run_id: run_id.to_owned(),
        ..v1::GetRunRequest::default()
    };
    client.get_run(request).await.expect("an acknowledged run")
}
