//! How a command worker ends: the first signal has it drain, the second one ends it at once.

use super::tally::Tally;
use crate::failure::Failure;
use flotilla_client::ClientError;
use tokio::sync::oneshot;

/// Runs a worker until it has drained: because it was `asked` to, or because `cause` was given. Being
/// asked again drops it, and what it runs with it. Says what became of its last tasks, if it had any.
///
/// # Errors
/// The worker's own; `drain_timeout` when tasks outlasted the drain, `drain_cut_short` when it is asked
/// again.
pub(super) async fn run<W>(
    mut asked: impl AsyncFnMut(),
    tally: &Tally,
    cause: impl Future<Output = ()>,
    work: impl FnOnce(oneshot::Receiver<()>) -> W,
) -> Result<Option<String>, Failure>
where
    W: Future<Output = Result<(), ClientError>>,
{
    let (drain, drained) = oneshot::channel();
    let watch = async {
        tokio::select! {
            () = asked() => {}
            () = cause => {}
        }
        tally.stop();
        // A worker that has ended by itself does not listen any more.
        let _ = drain.send(());
        asked().await;
        // The worker is still there, and so is what it runs.
        tally.give_up()
    };
    tokio::select! {
        ended = work(drained) => {
            ended?;
            tally.conclude()
        }
        failure = watch => Err(failure),
    }
}

/// Waits for the word to drain.
pub(super) async fn told(drained: oneshot::Receiver<()>) {
    if drained.await.is_err() {
        // Who would have told is gone, and the worker with it.
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
        let tally = Tally::new("task", Duration::from_secs(30));
        let running = tally.begin("charge (arun-1)".to_owned());
        let work = async move |_drained| {
            let _running = running;
            pending().await
        };
        let failure = run(async || {}, &tally, pending(), work).await;
        let failure = failure.expect_err("it was asked twice");
        expect![[r#"
            error: expected the worker to drain, but it was told to stop again: it gives up 1 task: charge (arun-1)
            hint: they go to other workers once their leases have ended
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }
}
