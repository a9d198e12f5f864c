//! Measures how long entries take, and from that how long the next one gathers commands.
//!
//! While a round is in flight, the next entry gathers for as long as a round takes. When it ends,
//! most callers that got a result send their next command: a worker completes the step that it was
//! assigned, a client starts its next run. These follow-ups would miss an entry that left
//! immediately, and arrive too late for half of the next; so the entry waits a little for them too,
//! if there were enough results to be worth it.

use crate::batch::queue::Queue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The maximum time that an entry gathers, however slow the rounds are.
const WINDOW_MAX: Duration = Duration::from_millis(10);
/// An entry with this many commands is worth a separate round.
const PLENTY: usize = 256;
/// How much of a round, from the end of the last one, the next entry waits for follow-ups.
const FOLLOW_UPS_PERCENT: u32 = 30;
/// Follow-ups of fewer results are not waited for: the command of a single client has no other to
/// share its entry with.
const ANSWERS_MIN: usize = 8;
/// The weight of a new round in the smoothed length is one part in this many.
const MEMORY: u32 = 8;

/// The rounds in flight, and the duration of earlier ones.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    state: Mutex<State>,
    /// Notified when the last round in flight has ended.
    idle: Notify,
}

#[derive(Debug, Default)]
struct State {
    under_way: usize,
    newest: Option<Instant>,
    ended: Option<Ended>,
    /// The smoothed length of a round: at most [`WINDOW_MAX`], so that one that hung does not count
    /// for dozens.
    length: Duration,
}

/// The round whose follow-ups are awaited.
#[derive(Clone, Copy, Debug)]
struct Ended {
    /// The end of the wait.
    until: Instant,
    /// The number of callers that got a result.
    answers: usize,
}

impl Ended {
    /// The number of follow-ups after which waiting for the rest no longer pays: four fifths of the
    /// results.
    fn follow_ups(self) -> usize {
        (self.answers * 4 / 5).min(PLENTY)
    }
}

/// A round in flight; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Round {
    rounds: Arc<Rounds>,
    begun: Instant,
    commands: usize,
}

impl Rounds {
    /// Begins a round for an entry of `commands` commands.
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

    /// Waits until the next entry is worth a round: not at all if none is in flight and none has
    /// just ended.
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
        // Nothing under the lock panics halfway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Until when the next entry gathers commands; `None` if no other is in flight.
    fn window(&self) -> Option<Instant> {
        let newest = self.newest.filter(|_| self.under_way > 0)?;
        Some(newest + self.length)
    }

    /// The round whose follow-ups the next entry waits for; `None` if their time is over or they
    /// are not worth it.
    fn awaited(&self, now: Instant) -> Option<Ended> {
        self.ended
            .filter(|ended| ended.answers >= ANSWERS_MIN && now < ended.until)
    }

    fn end(&mut self, round: &Round) {
        let now = Instant::now();
        let length = (now - round.begun).min(WINDOW_MAX);
        self.under_way -= 1;
        self.length = (self.length * (MEMORY - 1) + length) / MEMORY;
        // A small round that ends after a large one does not replace it.
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
            let (result_sender, _) = oneshot::channel();
            let submission = Submission {
                envelope: command(Admission::Progress).by_anyone(),
                bytes: 1,
                ticket: Arc::default(),
                result_sender,
                arrival: queue.arrive(),
            };
            queue.push(submission).unwrap();
        }
    }

    /// Rounds for this many commands that took this long so far; the last has just ended.
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

    /// Checks that gathering ends with this many commands, and not with one less.
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
    async fn while_no_entry_is_in_progress_the_next_one_does_not_wait() {
        let rounds = rounds_of(64, 8 * MS).await;
        sleep(4 * MS).await;
        assert!(rounds.gather(&queue()).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn while_one_is_in_progress_the_next_gathers_for_as_long_as_a_round_takes() {
        let rounds = rounds_of(1, 8 * MS).await;
        let _round = Rounds::begin(&rounds, 1);
        let gathered = gathered(&rounds, &queue()).await;
        assert!((7 * MS..=9 * MS).contains(&gathered), "{gathered:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_command_waits_longer_than_the_longest_window() {
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
    async fn gathering_beside_a_round_that_ends_waits_for_its_follow_ups_too() {
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
