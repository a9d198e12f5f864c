//! Waiting for what a node does by itself.

use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::timeout;

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks again and again until there is an answer, and returns it.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            yield_now().await;
        }
    };
    let Ok(answer) = timeout(PATIENCE, asking).await else {
        panic!("expected {what} within {PATIENCE:?}");
    };
    answer
}
