//! The threads of guests.

use crate::errors::Refusal;
use tokio::runtime::{Builder, Runtime};

/// By how much the threads' priority is lower than that of the node's own work: with 10, a guest gets about a tenth of a
/// processor that both want.
#[cfg(target_os = "linux")]
const NICE: i32 = 10;

/// Threads on which guests run and modules are compiled, apart from the node's own: they have a lower priority, so that
/// guests do not delay heartbeats, and other work does not wait for them.
pub(crate) struct GuestThreads {
    /// Only its threads for blocking work are used. Present until the drop.
    runtime: Option<Runtime>,
}

impl GuestThreads {
    /// Up to `count` threads, started when they are needed.
    pub(crate) fn new(count: usize) -> Self {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(count)
            .thread_name("wasm-guest")
            .on_thread_start(lower_priority)
            .build();
        Self {
            runtime: Some(
                runtime.expect("without timers and sockets, nothing of the system is needed"),
            ),
        }
    }

    /// Does the work on one of the threads, once one is free. It continues if its caller gives up.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let runtime = self.runtime.as_ref().expect("it lives until the drop");
        runtime
            .spawn_blocking(work)
            .await
            .map_err(|error| Refusal::internal(format!("the sandbox failed: {error}")))
    }
}

impl Drop for GuestThreads {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Guests end at their timeouts, which may be far away.
            runtime.shutdown_background();
        }
    }
}

/// Lowers the priority of this thread, which needs no privilege.
fn lower_priority() {
    // Elsewhere it would be that of the whole process.
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::nice(NICE) {
        tracing::warn!(%error, "the priority of a guest's thread could not be lowered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_the_threads_of_guests_have_a_lower_priority() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let own = nice();
        let threads = GuestThreads::new(1);
        assert_eq!(threads.run(nice).await, Ok((own + NICE).min(19)));
        assert_eq!(nice(), own);
    }

    #[tokio::test]
    async fn work_that_panics_is_refused_and_the_next_is_done() {
        let threads = GuestThreads::new(1);
        let refusal = threads.run(|| panic!("a bug")).await.map(|()| 0);
        assert!(refusal.unwrap_err().to_string().contains("a bug"));
        assert_eq!(threads.run(|| 7).await, Ok(7));
    }
}
