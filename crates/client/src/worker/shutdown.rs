//! How the owner of a worker ends it.

use tokio_util::sync::CancellationToken;

/// Lives to the end, and is told by `stop` once `shutdown` is ready.
pub(crate) async fn live_until<T>(
    shutdown: impl Future<Output = ()>,
    stop: &CancellationToken,
    life: impl Future<Output = T>,
) -> T {
    tokio::pin!(life);
    tokio::select! {
        ended = &mut life => return ended,
        () = shutdown => stop.cancel(),
    }
    life.await
}
