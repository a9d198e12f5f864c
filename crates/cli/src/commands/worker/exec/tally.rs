//! How many tasks or records are in hand, and what becomes of the last ones, to tell whoever stops a busy
//! worker.

use crate::code::Code;
use crate::failure::Failure;
use crate::period;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Tasks that are named of those that were cut off.
const NAMED_MAX: usize = 10;

/// Counts the tasks of a worker, or its records.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    /// What is counted, in the singular.
    noun: &'static str,
    /// How long tasks may still run after the worker was told to stop.
    grace: Duration,
    // A std mutex and not tokio's because it is never held across an await.
    counts: Arc<Mutex<Counts>>,
}

#[derive(Debug, Default)]
struct Counts {
    /// What runs, by a number of its own.
    running: BTreeMap<u64, String>,
    begun: u64,
    /// Until when tasks may run; set when this process was told to stop: not every drain is its own.
    stops_at: Option<Instant>,
    /// Since the drain began; none before.
    drain: Option<Drain>,
}

#[derive(Debug, Default)]
struct Drain {
    ended: usize,
    cut_off: Vec<String>,
}

/// A task that runs. Dropping it after the grace before it was [ended](Self::end) means that it was cut
/// off; earlier, that it was cancelled or took too long.
#[derive(Debug)]
pub(super) struct Running {
    tally: Tally,
    number: u64,
    has_ended: bool,
}

impl Tally {
    /// Of a worker that has run nothing yet.
    pub(super) fn new(noun: &'static str, grace: Duration) -> Self {
        Self {
            noun,
            grace,
            counts: Arc::default(),
        }
    }

    /// A task begins to run.
    pub(super) fn begin(&self, name: String) -> Running {
        let mut counts = self.counts();
        counts.begun += 1;
        let number = counts.begun;
        counts.running.insert(number, name);
        Running {
            tally: self.clone(),
            number,
            has_ended: false,
        }
    }

    /// This process was told to stop.
    pub(super) fn stop(&self) {
        self.counts().stops_at = Some(Instant::now() + self.grace);
    }

    /// The worker takes no more tasks and has some in hand; says what it waits for.
    pub(super) fn start_drain(&self, in_hand: usize) -> String {
        let mut counts = self.counts();
        counts.drain = Some(Drain::default());
        let waited_for = match in_hand {
            0 => format!("no {} is running", self.noun),
            count => format!("waits for {}", self.counted(count)),
        };
        let grace = period::show(self.grace);
        match (counts.stops_at, in_hand) {
            (None, _) => format!("drained by the cluster: {waited_for}"),
            (Some(_), 0) => format!("draining: {waited_for}"),
            (Some(_), _) => format!("draining: {waited_for}, at most {grace}"),
        }
    }

    /// The worker has stopped; says what became of its last tasks, if it had any.
    ///
    /// # Errors
    /// `drain_timeout` when some were cut off.
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
            "they were handed back for other workers; give more time with --drain-timeout-ms";
        Err(Failure::new(Code::DrainTimeout, message).with_hint(hint))
    }

    /// The worker is to end at once; says what it gives up.
    pub(super) fn give_up(&self) -> Failure {
        let counts = self.counts();
        let left: Vec<&String> = counts.running.values().collect();
        let given_up = match left.len() {
            0 => format!("it ends at once; no {} is running", self.noun),
            count => format!("it gives up {}: {}", self.counted(count), named(&left)),
        };
        let message =
            format!("expected the worker to drain, but it was told to stop again: {given_up}");
        let failure = Failure::new(Code::DrainCutShort, message);
        if left.is_empty() {
            return failure;
        }
        failure.with_hint("they go to other workers once their leases have ended")
    }

    fn counted(&self, count: usize) -> String {
        let plural = if count == 1 { "" } else { "s" };
        format!("{count} {}{plural}", self.noun)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The names of some of them, and how many there are besides.
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
    /// The task has come to its own end.
    pub(super) fn end(mut self) {
        self.has_ended = true;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut counts = self.tally.counts();
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

    fn begin<const N: usize>(tally: &Tally) -> [Running; N] {
        std::array::from_fn(|number| tally.begin(format!("charge (arun-{})", number + 1)))
    }

    #[test]
    fn a_busy_worker_says_what_it_waits_for_and_what_came_of_it() {
        let tally = Tally::new("task", GRACE);
        let [first] = begin(&tally);
        first.end();
        let [one, other] = begin(&tally);
        tally.stop();
        assert_eq!(
            tally.start_drain(2),
            "draining: waits for 2 tasks, at most 30s"
        );
        one.end();
        other.end();
        let concluded = tally.conclude().expect("all have ended");
        assert_eq!(concluded.as_deref(), Some("drained: 2 tasks ended"));
    }

    #[tokio::test(start_paused = true)]
    async fn tasks_that_do_not_end_in_time_are_named() {
        let tally = Tally::new("task", GRACE);
        let [one, cancelled, other, _third] = begin(&tally);
        tally.stop();
        let _ = tally.start_drain(4);
        one.end();
        drop(cancelled);
        advance(GRACE).await;
        drop(other);
        let failure = tally.conclude().expect_err("two are left");
        expect![[r#"
            error: expected every task to end within 30s, but 2 tasks did not: charge (arun-3), charge (arun-4)
            hint: they were handed back for other workers; give more time with --drain-timeout-ms
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn of_many_tasks_some_are_named() {
        let tally = Tally::new("record", Duration::ZERO);
        let running: [Running; NAMED_MAX + 2] = begin(&tally);
        tally.stop();
        let _ = tally.start_drain(running.len());
        drop(running);
        let failure = tally.conclude().expect_err("all are left");
        let text = failure.render(Format::Text);
        assert!(text.contains("12 records did not"), "{text}");
        assert!(text.contains("charge (arun-10) and 2 more"), "{text}");
    }

    #[test]
    fn a_worker_that_is_stopped_again_says_what_it_gives_up() {
        let tally = Tally::new("task", GRACE);
        let [one, _other] = begin(&tally);
        tally.stop();
        let _ = tally.start_drain(2);
        one.end();
        expect![[r#"
            error: expected the worker to drain, but it was told to stop again: it gives up 1 task: charge (arun-2)
            hint: they go to other workers once their leases have ended
        "#]]
        .assert_eq(&tally.give_up().render(Format::Text));
    }

    #[test]
    fn an_idle_worker_has_nothing_to_wait_for() {
        let tally = Tally::new("task", GRACE);
        tally.stop();
        assert_eq!(tally.start_drain(0), "draining: no task is running");
        assert_eq!(tally.conclude(), Ok(None));
    }

    #[test]
    fn a_worker_that_somebody_else_drains_has_all_the_time_it_needs() {
        let tally = Tally::new("task", GRACE);
        let [running] = begin(&tally);
        assert_eq!(
            tally.start_drain(1),
            "drained by the cluster: waits for 1 task"
        );
        running.end();
        let concluded = tally.conclude().expect("it has ended");
        assert_eq!(concluded.as_deref(), Some("drained: 1 task ended"));
    }
}
