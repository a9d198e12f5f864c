//! How the owner of a worker stops it.

use tokio_util::sync::CancellationToken;

/// Runs a worker to its end; triggers `stop` once `shutdown` is ready.
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
