//! Waits for what a node does by itself.

use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Retries until there is a result, and returns it.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            yield_now().await;
        }
    };
    let Ok(answer) = timeout(TIMEOUT, asking).await else {
        panic!("expected {what} within {TIMEOUT:?}");
    };
    answer
}
