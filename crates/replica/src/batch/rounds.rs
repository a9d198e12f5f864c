//! How long entries take, and how long the next one therefore gathers commands.

use crate::batch::queue::Queue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Nobody is kept waiting for longer, however slow the rounds are.
const WINDOW_MAX: Duration = Duration::from_millis(10);
/// How much of a round the next entry gathers for. With less there are more entries, and each costs every member a
/// dozen wake-ups; with all of it the log is idle between two entries.
const WINDOW_PERCENT: u32 = 75;
/// A new round counts for one part in so many of what is remembered of all.
const MEMORY: u32 = 8;

/// The rounds that are under way, and what earlier ones took.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    state: Mutex<State>,
    /// Rung when the last one that was under way has ended.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    newest: Option<Instant>,
    /// What a round takes, smoothed.
    length: Duration,
}

/// A round that is under way; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Round {
    rounds: Arc<Rounds>,
    begun: Instant,
}

impl Rounds {
    /// Begins a round.
    pub(crate) fn begin(rounds: &Arc<Self>) -> Round {
        let begun = Instant::now();
        let mut state = rounds.lock();
        state.under_way += 1;
        state.newest = Some(begun);
        drop(state);
        Round {
            rounds: Arc::clone(rounds),
            begun,
        }
    }

    /// Waits until the next entry is worth a round: at once when none is under way.
    pub(crate) async fn gather(&self, queue: &Queue) {
        let Some(until) = self.lock().window() else {
            return;
        };
        tokio::select! {
            () = sleep_until(until) => {}
            () = self.idle() => {}
            () = queue.wait_for_plenty() => {}
        }
    }

    async fn idle(&self) {
        while self.lock().under_way > 0 {
            self.idle.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock panics half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Until when the next entry gathers commands; `None` when no other is under way.
    fn window(&self) -> Option<Instant> {
        let newest = self.newest.filter(|_| self.under_way > 0)?;
        Some(newest + (self.length * WINDOW_PERCENT / 100).min(WINDOW_MAX))
    }

    fn end(&mut self, length: Duration) {
        self.under_way -= 1;
        self.length = (self.length * (MEMORY - 1) + length) / MEMORY;
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        let mut state = self.rounds.lock();
        state.end(self.begun.elapsed());
        let is_idle = state.under_way == 0;
        drop(state);
        if is_idle {
            self.rounds.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::queue::QueueBounds;
    use futures::FutureExt;
    use tokio::time::sleep;

    fn queue() -> Queue {
        Queue::new(QueueBounds {
            intake_max: 1,
            progress_max: 1,
            bytes_max: 1,
        })
    }

    /// Rounds that took this long so far.
    async fn rounds_of(length: Duration) -> Arc<Rounds> {
        let rounds = Arc::<Rounds>::default();
        for _ in 0..100 {
            let round = Rounds::begin(&rounds);
            sleep(length).await;
            drop(round);
        }
        rounds
    }

    #[tokio::test(start_paused = true)]
    async fn while_no_entry_is_under_way_the_next_one_waits_for_nothing() {
        let rounds = rounds_of(Duration::from_millis(8)).await;
        assert!(rounds.gather(&queue()).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn while_one_is_under_way_the_next_gathers_for_three_quarters_of_a_round() {
        let rounds = rounds_of(Duration::from_millis(8)).await;
        let _round = Rounds::begin(&rounds);
        let began = Instant::now();
        rounds.gather(&queue()).await;
        let gathered = began.elapsed();
        assert!(gathered > Duration::from_millis(5), "{gathered:?}");
        assert!(gathered <= Duration::from_millis(7), "{gathered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_the_longest_window() {
        let rounds = rounds_of(Duration::from_secs(10)).await;
        let _round = Rounds::begin(&rounds);
        let began = Instant::now();
        rounds.gather(&queue()).await;
        assert!(began.elapsed() <= WINDOW_MAX + Duration::from_millis(1));
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_last_round_ends_the_gathering() {
        let rounds = rounds_of(Duration::from_millis(18)).await;
        let round = Rounds::begin(&rounds);
        let queue = queue();
        let mut gathering = std::pin::pin!(rounds.gather(&queue));
        assert!(gathering.as_mut().now_or_never().is_none());
        drop(round);
        assert!(gathering.now_or_never().is_some());
    }
}
