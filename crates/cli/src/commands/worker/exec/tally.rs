//! How many tasks run, and what becomes of the last ones, to tell whoever stops a busy worker.

use crate::period;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Counts the tasks of a worker.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    // A std mutex and not tokio's because it is never held across an await.
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    running: usize,
    /// Whether this process was told to stop: not every drain is its own.
    is_stopping: bool,
    /// Since the drain began; none before.
    drain: Option<Drain>,
}

#[derive(Debug, Default)]
struct Drain {
    ended: usize,
    cut_off: usize,
}

/// A task that runs. Dropping it before it was [ended](Self::end) means that it was cut off.
#[derive(Debug)]
pub(super) struct Running {
    tally: Tally,
    has_ended: bool,
}

impl Tally {
    /// A task begins to run.
    pub(super) fn begin(&self) -> Running {
        self.counts().running += 1;
        Running {
            tally: self.clone(),
            has_ended: false,
        }
    }

    /// This process was told to stop.
    pub(super) fn stop(&self) {
        self.counts().is_stopping = true;
    }

    /// The worker takes no more tasks and has some in hand; says what it waits for.
    pub(super) fn start_drain(&self, in_hand: usize, grace: Duration) -> String {
        let mut counts = self.counts();
        counts.drain = Some(Drain::default());
        let waited_for = match in_hand {
            0 => "no task is running".to_owned(),
            count => format!("waits for {}", tasks(count)),
        };
        match (counts.is_stopping, in_hand) {
            (false, _) => format!("drained by the cluster: {waited_for}"),
            (true, 0) => format!("draining: {waited_for}"),
            (true, _) => format!("draining: {waited_for}, at most {}", period::show(grace)),
        }
    }

    /// The worker has stopped; says what became of its last tasks, if it had any.
    pub(super) fn conclude(&self) -> Option<String> {
        let counts = self.counts();
        let Drain { ended, cut_off } = counts.drain.as_ref()?;
        match (*ended, cut_off + counts.running) {
            (0, 0) => None,
            (ended, 0) => Some(format!("drained: {} ended", tasks(ended))),
            (ended, cut_off) => Some(format!(
                "stopped: {} ended, {cut_off} cut off and left to other workers",
                tasks(ended)
            )),
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    /// The task has come to its own end.
    pub(super) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut counts = self.tally.counts();
        counts.running -= 1;
        if let Some(drain) = &mut counts.drain {
            if self.has_ended {
                drain.ended += 1;
            } else {
                drain.cut_off += 1;
            }
        }
    }
}

fn tasks(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} task{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(30);

    #[test]
    fn a_busy_worker_says_what_it_waits_for_and_what_came_of_it() {
        let tally = Tally::default();
        tally.begin().end();
        let (one, other) = (tally.begin(), tally.begin());
        tally.stop();
        assert_eq!(
            tally.start_drain(2, GRACE),
            "draining: waits for 2 tasks, at most 30s"
        );
        one.end();
        other.end();
        assert_eq!(tally.conclude().as_deref(), Some("drained: 2 tasks ended"));
    }

    #[test]
    fn tasks_that_do_not_end_in_time_are_told_apart() {
        let tally = Tally::default();
        let (one, other, _third) = (tally.begin(), tally.begin(), tally.begin());
        tally.stop();
        let _ = tally.start_drain(3, GRACE);
        one.end();
        drop(other);
        assert_eq!(
            tally.conclude().as_deref(),
            Some("stopped: 1 task ended, 2 cut off and left to other workers")
        );
    }

    #[test]
    fn an_idle_worker_has_nothing_to_wait_for() {
        let tally = Tally::default();
        tally.stop();
        assert_eq!(tally.start_drain(0, GRACE), "draining: no task is running");
        assert_eq!(tally.conclude(), None);
    }

    #[test]
    fn a_worker_that_somebody_else_drains_has_all_the_time_it_needs() {
        let tally = Tally::default();
        let running = tally.begin();
        assert_eq!(
            tally.start_drain(1, GRACE),
            "drained by the cluster: waits for 1 task"
        );
        running.end();
        assert_eq!(tally.conclude().as_deref(), Some("drained: 1 task ended"));
    }
}
