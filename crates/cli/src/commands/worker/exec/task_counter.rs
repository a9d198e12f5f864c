//! Counts the running tasks or records, and reports on the last ones to the person who stops a busy
//! worker.

use crate::code::Code;
use crate::failure::Failure;
use crate::period;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many cut-off tasks are named.
const NAMED_MAX: usize = 10;

/// Counts the running tasks or records of a worker.
#[derive(Clone, Debug)]
pub(super) struct TaskCounter {
    /// The counted noun, in the singular.
    noun: &'static str,
    /// The drain grace: how long tasks may run after a stop request.
    grace: Duration,
    // A std mutex and not tokio's because it is never held across an await.
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// Running tasks, by a counter.
    running: BTreeMap<u64, String>,
    begun: u64,
    /// The end of the drain grace; set by a stop of this process, but not by a drain from
    /// elsewhere.
    stops_at: Option<Instant>,
    /// The counts since the drain began; `None` before.
    drain: Option<Drain>,
}

#[derive(Debug, Default)]
struct Drain {
    ended: usize,
    cut_off: Vec<String>,
}

/// A running task. If it is dropped without [ending](Self::end), it was cut off when the grace is
/// over, and cancelled or timed out before.
#[derive(Debug)]
pub(super) struct Running {
    task_counter: TaskCounter,
    number: u64,
    has_ended: bool,
}

impl TaskCounter {
    /// A counter without running tasks.
    pub(super) fn new(noun: &'static str, grace: Duration) -> Self {
        Self {
            noun,
            grace,
            counts: Arc::default(),
        }
    }

    /// Counts a task that begins.
    pub(super) fn begin(&self, name: String) -> Running {
        let mut counts = self.counts();
        counts.begun += 1;
        let number = counts.begun;
        counts.running.insert(number, name);
        Running {
            task_counter: self.clone(),
            number,
            has_ended: false,
        }
    }

    /// Records that this process was stopped.
    pub(super) fn stop(&self) {
        self.counts().stops_at = Some(Instant::now() + self.grace);
    }

    /// The worker takes no more tasks; returns a message about those that it holds.
    pub(super) fn start_drain(&self, in_flight: usize) -> String {
        let mut counts = self.counts();
        counts.drain = Some(Drain::default());
        let waited_for = match in_flight {
            0 => format!("no {} is running", self.noun),
            count => format!("waits for {}", self.counted(count)),
        };
        let grace = period::show(self.grace);
        match (counts.stops_at, in_flight) {
            (None, _) => format!("drained by the cluster: {waited_for}"),
            (Some(_), 0) => format!("draining: {waited_for}"),
            (Some(_), _) => format!("draining: {waited_for}, at most {grace}"),
        }
    }

    /// The worker has stopped; returns a message about its last tasks, if any.
    ///
    /// # Errors
    /// `drain_timeout` if some were cut off.
    pub(super) fn conclude(&self) -> Result<Option<String>, Failure> {
        let counts = self.counts();
        let Some(Drain { ended, cut_off }) = &counts.drain else {
            return Ok(None);
        };
        let left: Vec<&String> = cut_off.iter().chain(counts.running.values()).collect();
        if left.is_empty() {
            let drained = || format!("drained: {} ended", self.counted(*ended));
            return Ok((*ended > 0).then(drained));
        }
        let message = format!(
            "expected every {} to end within {}, but {} did not: {}",
            self.noun,
            period::show(self.grace),
            self.counted(left.len()),
            named(&left)
        );
        let hint =
            "they were returned and go to other workers; give more time with --drain-grace-ms";
        Err(Failure::new(Code::DrainTimeout, message).with_hint(hint))
    }

    /// The worker must end immediately; returns the failure that names the abandoned tasks.
    pub(super) fn give_up(&self) -> Failure {
        let counts = self.counts();
        let left: Vec<&String> = counts.running.values().collect();
        let given_up = match left.len() {
            0 => format!("it ends immediately; no {} is running", self.noun),
            count => format!("it abandons {}: {}", self.counted(count), named(&left)),
        };
        let message = format!("expected the worker to drain, but it was stopped again: {given_up}");
        let failure = Failure::new(Code::DrainInterrupted, message);
        if left.is_empty() {
            return failure;
        }
        failure.with_hint("other workers get them once their leases expire")
    }

    fn counted(&self, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", self.noun)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names of some of them, and the number of the rest.
fn named(all: &[&String]) -> String {
    let some: Vec<&str> = all
        .iter()
        .take(NAMED_MAX)
        .map(|name| name.as_str())
        .collect();
    let some = some.join(", ");
    match all.len().saturating_sub(NAMED_MAX) {
        0 => some,
        more => format!("{some} and {more} more"),
    }
}

impl Running {
    /// The task ended regularly.
    pub(super) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut counts = self.task_counter.counts();
        let name = counts.running.remove(&self.number).unwrap_or_default();
        let is_over = counts.stops_at.is_some_and(|stops| Instant::now() >= stops);
        if let Some(drain) = &mut counts.drain {
            if self.has_ended || !is_over {
                drain.ended += 1;
            } else {
                drain.cut_off.push(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;
    use tokio::time::advance;

    const GRACE: Duration = Duration::from_secs(30);

    fn begin<const N: usize>(task_counter: &TaskCounter) -> [Running; N] {
        std::array::from_fn(|number| task_counter.begin(format!("charge (arun-{})", number + 1)))
    }

    #[test]
    fn a_busy_worker_says_what_it_waits_for_and_what_came_of_it() {
        let task_counter = TaskCounter::new("task", GRACE);
        let [first] = begin(&task_counter);
        first.end();
        let [one, other] = begin(&task_counter);
        task_counter.stop();
        assert_eq!(
            task_counter.start_drain(2),
            "draining: waits for 2 tasks, at most 30s"
        );
        one.end();
        other.end();
        let concluded = task_counter.conclude().expect("all have ended");
        assert_eq!(concluded.as_deref(), Some("drained: 2 tasks ended"));
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_do_not_end_in_time_are_named() {
        let task_counter = TaskCounter::new("task", GRACE);
        let [one, cancelled, other, _third] = begin(&task_counter);
        task_counter.stop();
        let _ = task_counter.start_drain(4);
        one.end();
        drop(cancelled);
        advance(GRACE).await;
        drop(other);
        let failure = task_counter.conclude().expect_err("two are left");
        expect![[r#"
            error: expected every task to end within 30s, but 2 tasks did not: charge (arun-3), charge (arun-4)
            hint: they were returned and go to other workers; give more time with --drain-grace-ms
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn of_many_tasks_some_are_named() {
        let task_counter = TaskCounter::new("record", Duration::ZERO);
        let running: [Running; NAMED_MAX + 2] = begin(&task_counter);
        task_counter.stop();
        let _ = task_counter.start_drain(running.len());
        drop(running);
        let failure = task_counter.conclude().expect_err("all are left");
        let text = failure.render(Format::Text);
        assert!(text.contains("12 records did not"), "{text}");
        assert!(text.contains("charge (arun-10) and 2 more"), "{text}");
    }

    #[test]
    fn a_worker_that_is_stopped_again_says_what_it_gives_up() {
        let task_counter = TaskCounter::new("task", GRACE);
        let [one, _other] = begin(&task_counter);
        task_counter.stop();
        let _ = task_counter.start_drain(2);
        one.end();
        expect![[r#"
            error: expected the worker to drain, but it was stopped again: it abandons 1 task: charge (arun-2)
            hint: other workers get them once their leases expire
        "#]]
        .assert_eq(&task_counter.give_up().render(Format::Text));
    }

    #[test]
    fn an_idle_worker_has_nothing_to_wait_for() {
        let task_counter = TaskCounter::new("task", GRACE);
        task_counter.stop();
        assert_eq!(task_counter.start_drain(0), "draining: no task is running");
        assert_eq!(task_counter.conclude(), Ok(None));
    }

    #[test]
    fn a_worker_that_somebody_else_drains_has_all_the_time_it_needs() {
        let task_counter = TaskCounter::new("task", GRACE);
        let [running] = begin(&task_counter);
        assert_eq!(
            task_counter.start_drain(1),
            "drained by the cluster: waits for 1 task"
        );
        running.end();
        let concluded = task_counter.conclude().expect("it has ended");
        assert_eq!(concluded.as_deref(), Some("drained: 1 task ended"));
    }
}
