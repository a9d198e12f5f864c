//! How long entries take, and how long the next one therefore gathers commands.
//!
//! While a round is under way, the next entry gathers for as long as a round takes. When it has ended, most of
//! those who were answered come back with their next command: a worker completes the step that it was handed, a
//! client starts its next run. These follow-ups would miss an entry that left at once, and come too late for half of
//! the next; so the entry waits a little for them, too, if there were enough answers to be worth it.

use crate::batch::queue::Queue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// An entry gathers for no longer than this in all, however slow the rounds are.
const WINDOW_MAX: Duration = Duration::from_millis(10);
/// An entry of so many commands is worth a round of its own.
const PLENTY: usize = 256;
/// How much of a round, from the end of the last one, the next entry waits for follow-ups.
const FOLLOW_UPS_PERCENT: u32 = 30;
/// Follow-ups of fewer answers are not waited for: a single client finds no one to share its entry with.
const ANSWERS_MIN: usize = 8;
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
    ended: Option<Ended>,
    /// What a round takes, smoothed: [`WINDOW_MAX`] at most, so that one that hung does not count for dozens.
    length: Duration,
}

/// The round whose follow-ups are awaited.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// Until when.
    until: Instant,
    /// How many callers were answered.
    answers: usize,
}

impl Ended {
    /// With so many follow-ups, waiting for the stragglers no longer pays: four fifths of those who were answered.
    fn follow_ups(self) -> usize {
        (self.answers * 4 / 5).min(PLENTY)
    }
}

/// A round that is under way; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Round {
    rounds: Arc<Rounds>,
    begun: Instant,
    commands: usize,
}

impl Rounds {
    /// Begins a round for an entry of so many commands.
    pub(crate) fn begin(rounds: &Arc<Self>, commands: usize) -> Round {
        let begun = Instant::now();
        let mut state = rounds.lock();
        state.under_way += 1;
        state.newest = Some(begun);
        drop(state);
        Round {
            rounds: Arc::clone(rounds),
            begun,
            commands,
        }
    }

    /// Waits until the next entry is worth a round: at once when none is under way and none has just ended.
    pub(crate) async fn gather(&self, queue: &Queue) {
        let latest = Instant::now() + WINDOW_MAX;
        self.gather_beside_a_round(queue, latest).await;
        self.gather_follow_ups(queue, latest).await;
    }

    async fn gather_beside_a_round(&self, queue: &Queue, latest: Instant) {
        let Some(until) = self.lock().window() else {
            return;
        };
        tokio::select! {
            () = sleep_until(until.min(latest)) => {}
            () = self.idle() => {}
            () = queue.wait_for(PLENTY) => {}
        }
    }

    async fn gather_follow_ups(&self, queue: &Queue, latest: Instant) {
        let Some(ended) = self.lock().awaited(Instant::now()) else {
            return;
        };
        tokio::select! {
            () = sleep_until(ended.until.min(latest)) => {}
            () = queue.wait_for(ended.follow_ups()) => {}
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
        Some(newest + self.length)
    }

    /// The round whose follow-ups the next entry waits for; `None` when their time is past or it is not worth it.
    fn awaited(&self, now: Instant) -> Option<Ended> {
        self.ended
            .filter(|ended| ended.answers >= ANSWERS_MIN && now < ended.until)
    }

    fn end(&mut self, round: &Round) {
        let now = Instant::now();
        let length = (now - round.begun).min(WINDOW_MAX);
        self.under_way -= 1;
        self.length = (self.length * (MEMORY - 1) + length) / MEMORY;
        // A small one that ends behind a large one does not make up for it.
        let awaited = self.awaited(now).map_or(0, |ended| ended.answers);
        if round.commands >= awaited {
            self.ended = Some(Ended {
                until: now + self.length * FOLLOW_UPS_PERCENT / 100,
                answers: round.commands,
            });
        }
    }
}

impl Drop for Round {
    fn drop(&mut self) {
        let mut state = self.rounds.lock();
        state.end(self);
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
    use crate::batch::queue::{QueueBounds, Submission};
    use crate::testing::command;
    use flotilla_engine::Admission;
    use futures::FutureExt;
    use std::pin::pin;
    use tokio::sync::oneshot;
    use tokio::time::sleep;

    fn queue() -> Queue {
        Queue::new(QueueBounds {
            intake_max: 1_000,
            progress_max: 1_000,
            bytes_max: 1_000,
        })
    }

    fn push(queue: &Queue, count: usize) {
        for _ in 0..count {
            let (answer, _) = oneshot::channel();
            let submission = Submission {
                command: command(Admission::Progress),
                bytes: 1,
                ticket: Arc::default(),
                answer,
            };
            queue.push(submission).unwrap();
        }
    }

    /// Rounds for so many commands that took this long so far; the last has just ended.
    async fn rounds_of(commands: usize, length: Duration) -> Arc<Rounds> {
        let rounds = Arc::<Rounds>::default();
        for _ in 0..100 {
            let round = Rounds::begin(&rounds, commands);
            sleep(length).await;
            drop(round);
        }
        rounds
    }

    async fn gathered(rounds: &Rounds, queue: &Queue) -> Duration {
        let began = Instant::now();
        rounds.gather(queue).await;
        began.elapsed()
    }

    /// With so many commands the gathering ends, and not with one less.
    fn check_enough(rounds: &Rounds, count: usize) {
        let queue = queue();
        push(&queue, count - 1);
        let mut gathering = pin!(rounds.gather(&queue));
        assert!(gathering.as_mut().now_or_never().is_none());
        push(&queue, 1);
        assert!(gathering.now_or_never().is_some());
    }

    const MS: Duration = Duration::from_millis(1);

    #[tokio::test(start_paused = true)]
    async fn while_no_entry_is_under_way_the_next_one_waits_for_nothing() {
        let rounds = rounds_of(64, 8 * MS).await;
        sleep(4 * MS).await;
        assert!(rounds.gather(&queue()).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn while_one_is_under_way_the_next_gathers_for_as_long_as_a_round_takes() {
        let rounds = rounds_of(1, 8 * MS).await;
        let _round = Rounds::begin(&rounds, 1);
        let gathered = gathered(&rounds, &queue()).await;
        assert!((7 * MS..=9 * MS).contains(&gathered), "{gathered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_longer_than_the_longest_window() {
        let rounds = rounds_of(64, Duration::from_secs(10)).await;
        let round = Rounds::begin(&rounds, 64);
        let queue = queue();
        let began = Instant::now();
        let ends = async {
            sleep(9 * MS).await;
            drop(round);
        };
        tokio::join!(rounds.gather(&queue), ends);
        let gathered = began.elapsed();
        assert!((9 * MS..=11 * MS).contains(&gathered), "{gathered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_round_that_hung_is_soon_forgotten() {
        let rounds = rounds_of(1, MS).await;
        let hung = Rounds::begin(&rounds, 1);
        sleep(1_000 * WINDOW_MAX).await;
        drop(hung);
        let _round = Rounds::begin(&rounds, 1);
        let gathered = gathered(&rounds, &queue()).await;
        assert!(gathered <= 4 * MS, "{gathered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_the_last_round_ends_the_gathering() {
        let rounds = rounds_of(1, 18 * MS).await;
        let round = Rounds::begin(&rounds, 1);
        let queue = queue();
        let mut gathering = pin!(rounds.gather(&queue));
        assert!(gathering.as_mut().now_or_never().is_none());
        drop(round);
        assert!(gathering.now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn plenty_of_commands_end_the_gathering() {
        let rounds = rounds_of(1, 8 * MS).await;
        let _round = Rounds::begin(&rounds, 1);
        check_enough(&rounds, PLENTY);
    }

    #[tokio::test(start_paused = true)]
    async fn behind_a_round_the_next_entry_waits_for_a_part_of_one_for_follow_ups() {
        let rounds = rounds_of(ANSWERS_MIN, 8 * MS).await;
        let gathered = gathered(&rounds, &queue()).await;
        assert!((2 * MS..=4 * MS).contains(&gathered), "{gathered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn who_gathers_beside_a_round_that_ends_waits_for_its_follow_ups_too() {
        let rounds = rounds_of(ANSWERS_MIN, 8 * MS).await;
        let round = Rounds::begin(&rounds, ANSWERS_MIN);
        let queue = queue();
        let mut gathering = pin!(rounds.gather(&queue));
        assert!(gathering.as_mut().now_or_never().is_none());
        drop(round);
        assert!(gathering.as_mut().now_or_never().is_none());
        push(&queue, ANSWERS_MIN - 1);
        assert!(gathering.now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_small_round_that_ends_behind_a_large_one_does_not_hide_it() {
        let rounds = rounds_of(1, 8 * MS).await;
        let [large, small] = [20, 1].map(|commands| Rounds::begin(&rounds, commands));
        drop((large, small));
        assert!(rounds.gather(&queue()).now_or_never().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn four_fifths_of_the_answers_as_follow_ups_are_enough() {
        let rounds = rounds_of(20, 8 * MS).await;
        check_enough(&rounds, 16);
    }

    #[tokio::test(start_paused = true)]
    async fn follow_ups_of_a_few_answers_are_not_waited_for() {
        let rounds = rounds_of(ANSWERS_MIN - 1, 8 * MS).await;
        assert!(rounds.gather(&queue()).now_or_never().is_some());
    }
}
