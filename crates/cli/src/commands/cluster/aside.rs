//! Work that blocks, and that a person may stop.
//!
//! It has a thread of its own and none of the runtime's: for those a process waits when it ends, however long
//! they take.

use crate::code::Code;
use crate::failure::Failure;
use std::error::Error;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tokio::sync::oneshot;

/// Whether work is to end. It looks here itself: nobody can stop a thread from outside.
#[derive(Clone, Debug, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

/// Reads until it is to stop.
#[derive(Debug)]
pub(super) struct Stoppable<R> {
    pub(super) input: R,
    pub(super) stop: Stop,
}

impl Stop {
    /// Lets the work go on, unless it is to end.
    ///
    /// # Errors
    /// When it is to end.
    pub(super) fn check(&self) -> io::Result<()> {
        if self.0.load(Ordering::Relaxed) {
            // Not `Interrupted`, which is tried again.
            return Err(io::Error::other("it was stopped"));
        }
        Ok(())
    }

    fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stop.check()?;
        self.input.read(buffer)
    }
}

/// Does the work. When a stop is requested it is told so, and has the time to leave nothing behind; at the second
/// request it is left to itself, until the process ends.
///
/// # Errors
/// `backup_stopped`, also when the work ended well after the request.
pub(super) async fn aside<T: Send + 'static>(
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

/// What whoever stopped a backup is told.
pub(super) fn stopped() -> Failure {
    let message = "expected to finish the backup, but it was stopped";
    Failure::new(Code::BackupStopped, message)
}

/// Work aside that did not end.
pub(super) fn failed(error: &dyn Error) -> Failure {
    Failure::new(
        Code::Runtime,
        format!("expected the work to end, but {error}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::sync::mpsc::sync_channel;

    #[tokio::test]
    async fn work_that_nobody_stops_gives_what_it_makes() {
        let made = aside(|_| 7, async || pending().await).await;
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
        let failure = aside(work, once).await.expect_err("it was stopped");
        assert_eq!(failure.code(), "backup_stopped");
        assert!(is_clean.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn work_that_does_not_end_is_not_waited_for_at_the_second_request() {
        let (release, released) = sync_channel::<()>(0);
        let work = move |_: &Stop| released.recv().is_ok();
        let failure = aside(work, async || {}).await.expect_err("it was stopped");
        assert_eq!(failure.code(), "backup_stopped");
        drop(release);
    }

    #[test]
    fn a_file_is_read_no_further_once_it_is_to_stop() {
        let stop = Stop::default();
        let mut file = Stoppable {
            input: io::repeat(1),
            stop: stop.clone(),
        };
        file.read_exact(&mut [0; 4]).expect("it goes on");
        stop.request();
        let error = file.read_exact(&mut [0; 4]).expect_err("it is to stop");
        assert_ne!(error.kind(), io::ErrorKind::Interrupted);
    }
}
