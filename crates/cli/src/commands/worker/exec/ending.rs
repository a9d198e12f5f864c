//! How a command worker ends: the first signal drains it, a second one ends it immediately.

use super::task_counter::TaskCounter;
use crate::failure::Failure;
use flotilla_client::ClientError;
use tokio::sync::oneshot;

/// Runs a worker until it has drained, either on `stop_requested` or because of `cause`. A second
/// stop request drops the worker and its running programs. Prints what happened to its last tasks,
/// if any.
///
/// # Errors
/// The worker's own errors; `drain_timeout` if tasks did not end within the drain grace,
/// `drain_interrupted` on a second stop request.
pub(super) async fn run<W>(
    mut stop_requested: impl AsyncFnMut(),
    task_counter: &TaskCounter,
    cause: impl Future<Output = ()>,
    work: impl FnOnce(oneshot::Receiver<()>) -> W,
) -> Result<Option<String>, Failure>
where
    W: Future<Output = Result<(), ClientError>>,
{
    let (drain, drained) = oneshot::channel();
    let watch = async {
        tokio::select! {
            () = stop_requested() => {}
            () = cause => {}
        }
        task_counter.stop();
        // A worker that has ended by itself no longer listens.
        let _ = drain.send(());
        stop_requested().await;
        // The worker and its programs are still running here.
        task_counter.give_up()
    };
    tokio::select! {
        ended = work(drained) => {
            ended?;
            task_counter.conclude()
        }
        failure = watch => Err(failure),
    }
}

/// Waits for the request to drain.
pub(super) async fn drain_requested(drained: oneshot::Receiver<()>) {
    if drained.await.is_err() {
        // The sender is gone, and the worker with it.
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;
    use std::future::pending;
    use std::time::Duration;

    #[tokio::test]
    async fn what_is_given_up_is_named_even_if_the_worker_goes_with_it() {
        let task_counter = TaskCounter::new("task", Duration::from_secs(30));
        let running = task_counter.begin("charge (arun-1)".to_owned());
        let work = async move |_drained| {
            let _running = running;
            pending().await
        };
        let failure = run(async || {}, &task_counter, pending(), work).await;
        let failure = failure.expect_err("it was asked twice");
        expect![[r#"
            error: expected the worker to drain, but it was stopped again: it abandons 1 task: charge (arun-1)
            hint: other workers get them once their leases expire
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }
}
