//! Blocking work that a person may stop.
//!
//! The work runs on a dedicated thread, not on the runtime's blocking pool: a process waits for
//! that pool on exit, however long its jobs take.

use crate::code::Code;
use crate::failure::Failure;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::oneshot;

/// A request to stop, which the work itself checks: a thread cannot be stopped from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// A reader that fails once a stop is requested.
#[derive(Debug)]
pub(super) struct StoppableReader<R> {
    pub(super) input: R,
    pub(super) stop: Stop,
}

impl Stop {
    /// Checks whether the work may continue.
    ///
    /// # Errors
    /// If a stop was requested.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            // Not `Interrupted`, because readers retry that.
            return Err(io::Error::other("it was stopped"));
        }
        Ok(())
    }

    fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<R: Read> Read for StoppableReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.input.read(buffer)
    }
}

/// Runs the work. The first stop request is passed on, and the work has time to clean up; a second
/// one abandons it until the process ends.
///
/// # Errors
/// `backup_interrupted`, even if the work finished after the request.
pub(super) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce(&Stop) -> T + Send + 'static,
    mut stop_requested: impl AsyncFnMut(),
) -> Result<T, Failure> {
    let stop = Stop::default();
    let (done, mut ended) = oneshot::channel();
    let own = stop.clone();
    let spawned = thread::Builder::new().spawn(move || drop(done.send(work(&own))));
    spawned.map_err(|error| failed(&error))?;
    tokio::select! {
        end = &mut ended => return end.map_err(|error| failed(&error)),
        () = stop_requested() => stop.request(),
    }
    tokio::select! {
        _ = ended => {}
        () = stop_requested() => {}
    }
    Err(stopped())
}

/// The failure for a stopped backup.
pub(super) fn stopped() -> Failure {
    let message = "expected to finish the backup, but it was stopped";
    Failure::new(Code::BackupInterrupted, message)
}

/// The failure for work that ended abnormally.
pub(super) fn failed(error: &dyn Error) -> Failure {
    Failure::new(
        Code::RuntimeStartFailed,
        format!("expected the work to end, but {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::mpsc::sync_channel;

    #[tokio::test]
    async fn work_that_is_not_stopped_returns_its_result() {
        let made = run_blocking(|_| 7, async || pending().await).await;
        assert_eq!(made, Ok(7));
    }

    #[tokio::test]
    async fn work_that_is_stopped_has_the_time_to_clean_up() {
        let is_clean = Arc::new(AtomicBool::new(false));
        let cleaned = is_clean.clone();
        let work = move |stop: &Stop| {
            while stop.check().is_ok() {
                thread::yield_now();
            }
            cleaned.store(true, Ordering::Relaxed);
        };
        let mut requests = 0;
        let once = async || {
            requests += 1;
            if requests > 1 {
                pending::<()>().await;
            }
        };
        let failure = run_blocking(work, once).await.expect_err("it was stopped");
        assert_eq!(failure.code(), "backup_interrupted");
        assert!(is_clean.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn work_that_does_not_end_is_not_waited_for_at_the_second_request() {
        let (release, released) = sync_channel::<()>(0);
        let work = move |_: &Stop| released.recv().is_ok();
        let failure = run_blocking(work, async || {})
            .await
            .expect_err("it was stopped");
        assert_eq!(failure.code(), "backup_interrupted");
        drop(release);
    }

    #[test]
    fn a_file_is_read_no_further_once_it_is_to_stop() {
        let stop = Stop::default();
        let mut file = StoppableReader {
            input: io::repeat(1),
            stop: stop.clone(),
        };
        file.read_exact(&mut [0; 4]).expect("the read continues");
        stop.request();
        let error = file.read_exact(&mut [0; 4]).expect_err("it is to stop");
        assert_ne!(error.kind(), io::ErrorKind::Interrupted);
    }
}
