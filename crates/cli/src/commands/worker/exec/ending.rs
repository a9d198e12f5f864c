//! How a command worker ends: the first signal has it drain, the second one ends it at once.

use super::tally::Tally;
use crate::failure::Failure;
use crate::shutdown::Shutdown;
use flotilla_client::ClientError;
use tokio::sync::oneshot;

/// Runs a worker until it has drained: because of a signal, or because `cause` was given. A second
/// signal drops it, and what it runs with it. Says what became of its last tasks, if it had any.
///
/// # Errors
/// The worker's own; `drain_timeout` when tasks outlasted the drain, `drain_cut_short` at the second
/// signal.
pub(super) async fn run<W>(
    mut shutdown: Shutdown,
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
            () = shutdown.requested() => {}
            () = cause => {}
        }
        tally.stop();
        // A worker that has ended by itself does not listen any more.
        let _ = drain.send(());
        shutdown.requested().await;
    };
    tokio::select! {
        ended = work(drained) => {
            ended?;
            tally.conclude()
        }
        () = watch => Err(tally.give_up()),
    }
}

/// Waits for the word to drain.
pub(super) async fn told(drained: oneshot::Receiver<()>) {
    if drained.await.is_err() {
        // Who would have told is gone, and the worker with it.
        std::future::pending().await
    }
}
