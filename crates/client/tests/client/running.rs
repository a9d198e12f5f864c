//! A worker that runs in the background.

use flotilla_client::ClientError;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// A worker that runs in the background. Dropping its `stop` does not stop it.
pub(crate) struct Running {
    pub(crate) stop: oneshot::Sender<()>,
    pub(crate) ended: JoinHandle<Result<(), ClientError>>,
}

impl Running {
    /// Runs a worker, which receives its shutdown signal.
    pub(crate) fn start<F>(run: impl FnOnce(BoxFuture<'static, ()>) -> F) -> Self
    where
        F: Future<Output = Result<(), ClientError>> + Send + 'static,
    {
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            if stopped.await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        Self {
            stop,
            ended: tokio::spawn(run(shutdown.boxed())),
        }
    }
}
