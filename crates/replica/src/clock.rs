//! The clocks of a node, and the stamps of its entries (design rule 1).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

/// The clocks of a machine.
pub trait Clock: Send + Sync {
    /// Milliseconds since the Unix epoch, by the machine's clock.
    fn wall_ms(&self) -> u64;

    /// Milliseconds since an arbitrary moment of this process; never decreases.
    fn monotonic_ms(&self) -> u64;
}

/// The clocks of the operating system.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            start: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A forward step beyond this needs the clocks of a majority of the voters. In milliseconds.
const STEP_MS_MAX: u64 = 5_000;
/// Stamps may run faster or slower than real time by one part in this many.
const SLEW_DIVISOR: u64 = 10;
/// How long a peer's clock reading counts. In milliseconds.
const PEER_AGE_MS_MAX: u64 = 10_000;

/// The clock of stamps: it advances with the monotonic clock from the last applied stamp, is slewed
/// towards the wall clock, and is stepped only if a majority of voters agrees.
pub(crate) struct StampClock {
    clock: Arc<dyn Clock>,
    node_id: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last stamp made or applied here, and when.
    last: Option<Mark>,
    /// Real time since then that has not counted for slewing: stamps are made so often that a tenth
    /// of the time between two of them may be less than a millisecond. In milliseconds, below
    /// [`SLEW_DIVISOR`].
    slew_rest_ms: u64,
    peers: BTreeMap<u64, Mark>,
}

/// A time of the cluster or of a peer, and this node's monotonic clock at that moment.
#[derive(Clone, Copy, Debug)]
struct Mark {
    ms: u64,
    monotonic_ms: u64,
}

impl StampClock {
    pub(crate) fn new(clock: Arc<dyn Clock>, node_id: u64) -> Self {
        Self {
            clock,
            node_id,
            state: Mutex::default(),
        }
    }

    /// This machine's wall clock, for peers.
    pub(crate) fn wall_ms(&self) -> u64 {
        self.clock.wall_ms()
    }

    /// Records the time after an applied entry.
    pub(crate) fn observe(&self, now_ms: u64) {
        let monotonic_ms = self.clock.monotonic_ms();
        let mut state = self.state();
        if state.last.is_none_or(|last| last.ms < now_ms) {
            state.last = Some(Mark {
                ms: now_ms,
                monotonic_ms,
            });
            state.slew_rest_ms = 0;
        }
    }

    /// Records a peer's wall clock.
    pub(crate) fn observe_peer(&self, peer: u64, wall_ms: u64) {
        let monotonic_ms = self.clock.monotonic_ms();
        self.state().peers.insert(
            peer,
            Mark {
                ms: wall_ms,
                monotonic_ms,
            },
        );
    }

    /// The time of the next entry, for these voters.
    pub(crate) fn next(&self, voters: impl IntoIterator<Item = u64>) -> u64 {
        let mut state = self.state();
        let (mark, slew_rest_ms) = self.mark(&state, voters);
        state.last = Some(mark);
        state.slew_rest_ms = slew_rest_ms;
        mark.ms
    }

    /// What [`StampClock::next`] would return now.
    pub(crate) fn peek(&self, voters: impl IntoIterator<Item = u64>) -> u64 {
        self.mark(&self.state(), voters).0.ms
    }

    /// The current stamp, and the rest that does not count for slewing yet.
    fn mark(&self, state: &State, voters: impl IntoIterator<Item = u64>) -> (Mark, u64) {
        let wall_ms = self.clock.wall_ms();
        let monotonic_ms = self.clock.monotonic_ms();
        let readings = state.readings(voters, (self.node_id, wall_ms), monotonic_ms);
        let agreed_ms = majority(&readings);
        let Some(last) = state.last else {
            let ms = agreed_ms.map_or(0, |agreed_ms| agreed_ms.min(wall_ms));
            return (Mark { ms, monotonic_ms }, 0);
        };
        let elapsed_ms = monotonic_ms.saturating_sub(last.monotonic_ms);
        let slewable_ms = elapsed_ms.saturating_add(state.slew_rest_ms);
        let even_ms = last.ms.saturating_add(elapsed_ms);
        let ms = correct(even_ms, slewable_ms / SLEW_DIVISOR, wall_ms, agreed_ms);
        (Mark { ms, monotonic_ms }, slewable_ms % SLEW_DIVISOR)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What each voter's wall clock shows now; unset for voters without a recent reading.
    fn readings(
        &self,
        voters: impl IntoIterator<Item = u64>,
        own: (u64, u64),
        monotonic_ms: u64,
    ) -> Vec<Option<u64>> {
        let reading = |voter| {
            if voter == own.0 {
                return Some(own.1);
            }
            let heard = self.peers.get(&voter)?;
            let age_ms = monotonic_ms.saturating_sub(heard.monotonic_ms);
            (age_ms <= PEER_AGE_MS_MAX).then(|| heard.ms.saturating_add(age_ms))
        };
        voters.into_iter().map(reading).collect()
    }
}

/// The latest time that the clocks of a majority of the voters have reached, if that many are
/// known.
fn majority(readings: &[Option<u64>]) -> Option<u64> {
    let mut known: Vec<u64> = readings.iter().copied().flatten().collect();
    known.sort_unstable_by(|one, other| other.cmp(one));
    known.get(readings.len() / 2).copied()
}

/// The stamp that would be `even_ms` by the monotonic clock alone. It may be slewed by `slew_ms`;
/// `agreed_ms` is what the clocks of a majority have reached.
fn correct(even_ms: u64, slew_ms: u64, wall_ms: u64, agreed_ms: Option<u64>) -> u64 {
    if wall_ms <= even_ms {
        return even_ms - slew_ms.min(even_ms - wall_ms);
    }
    let behind_ms = wall_ms - even_ms;
    if behind_ms <= STEP_MS_MAX {
        return even_ms + slew_ms.min(behind_ms);
    }
    // Too far to slew, and a single wrong clock must not expire every lease and timer.
    let target_ms = agreed_ms.map_or(even_ms, |agreed_ms| agreed_ms.min(wall_ms));
    target_ms.max(even_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[derive(Default)]
    struct ManualClock {
        wall_ms: AtomicU64,
        monotonic_ms: AtomicU64,
    }

    impl Clock for ManualClock {
        fn wall_ms(&self) -> u64 {
            self.wall_ms.load(Ordering::Relaxed)
        }

        fn monotonic_ms(&self) -> u64 {
            self.monotonic_ms.load(Ordering::Relaxed)
        }
    }

    struct Fixture {
        clock: Arc<ManualClock>,
        stamps: StampClock,
    }

    impl Fixture {
        /// Node 1 at wall time one million, its last entry applied just now at that time.
        fn new() -> Self {
            let clock = Arc::new(ManualClock::default());
            clock.wall_ms.store(1_000_000, Ordering::Relaxed);
            let stamps = StampClock::new(Arc::clone(&clock) as Arc<dyn Clock>, 1);
            stamps.observe(1_000_000);
            Self { clock, stamps }
        }

        fn pass(&self, ms: u64) {
            self.clock.wall_ms.fetch_add(ms, Ordering::Relaxed);
            self.clock.monotonic_ms.fetch_add(ms, Ordering::Relaxed);
        }

        fn step_wall(&self, ms: i64) {
            let wall = self.clock.wall_ms().saturating_add_signed(ms);
            self.clock.wall_ms.store(wall, Ordering::Relaxed);
        }

        fn next(&self) -> u64 {
            self.stamps.next([1, 2, 3])
        }
    }

    #[test]
    fn stamps_follow_the_clocks_while_they_agree() {
        let fixture = Fixture::new();
        fixture.pass(250);
        assert_eq!(fixture.next(), 1_000_250);
        fixture.pass(1);
        assert_eq!(fixture.next(), 1_000_251);
    }

    #[test]
    fn a_small_difference_is_slewed_away_in_either_direction() {
        let fixture = Fixture::new();
        fixture.step_wall(1_000);
        fixture.pass(1_000);
        assert_eq!(fixture.next(), 1_001_100, "a tenth faster");
        let fixture = Fixture::new();
        fixture.step_wall(-1_000);
        fixture.pass(1_000);
        assert_eq!(fixture.next(), 1_000_900, "a tenth slower");
        fixture.pass(100_000);
        assert_eq!(fixture.next(), 1_100_000, "and then together");
    }

    proptest! {
        #[test]
        fn many_small_steps_slew_as_far_as_one_large_one(
            steps in prop::collection::vec(0_u64..30, 0..300),
            difference_ms in -4_000_i64..4_000,
        ) {
            let (often, once) = (Fixture::new(), Fixture::new());
            often.step_wall(difference_ms);
            once.step_wall(difference_ms);
            for step in &steps {
                often.pass(*step);
                often.next();
            }
            once.pass(steps.iter().sum());
            prop_assert_eq!(often.next(), once.next());
        }
    }

    #[test]
    fn a_stamp_never_goes_back_however_far_the_wall_clock_does() {
        let fixture = Fixture::new();
        fixture.step_wall(-900_000);
        fixture.pass(10);
        assert_eq!(fixture.next(), 1_000_009);
    }

    #[test]
    fn one_wrong_clock_cannot_step_the_time() {
        let fixture = Fixture::new();
        fixture.stamps.observe_peer(2, 1_000_000);
        fixture.stamps.observe_peer(3, 1_000_000);
        fixture.step_wall(86_400_000);
        fixture.pass(100);
        assert_eq!(fixture.next(), 1_000_100);
    }

    #[test]
    fn a_majority_of_clocks_steps_the_time_to_what_it_has_reached() {
        let fixture = Fixture::new();
        fixture.step_wall(60_000);
        fixture.stamps.observe_peer(2, 1_059_000);
        fixture.pass(100);
        assert_eq!(fixture.next(), 1_059_100);
    }

    #[test]
    fn voters_not_heard_lately_do_not_count() {
        let fixture = Fixture::new();
        fixture.stamps.observe_peer(2, 1_060_000);
        fixture.stamps.observe_peer(3, 1_060_000);
        fixture.pass(PEER_AGE_MS_MAX + 1);
        fixture.step_wall(60_000);
        assert_eq!(fixture.next(), 1_010_001);
    }

    #[test]
    fn a_single_voter_agrees_with_itself() {
        let fixture = Fixture::new();
        fixture.step_wall(3_600_000);
        assert_eq!(fixture.stamps.next([1]), 4_600_000);
    }

    #[test]
    fn the_first_stamp_of_a_cluster_is_what_a_majority_has_reached() {
        let clock = Arc::new(ManualClock::default());
        clock.wall_ms.store(500, Ordering::Relaxed);
        let stamps = StampClock::new(clock, 1);
        stamps.observe_peer(2, 450);
        assert_eq!(stamps.next([1, 2, 3]), 450);
    }
}
