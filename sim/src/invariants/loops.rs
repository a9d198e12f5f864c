//! A loop ends one iteration for each of its items, and the writes of those that succeed go to the state of the run, each
//! once (W57).

use super::rows::{PastEvent, rows, runs_of};
use flotilla_engine::ids::{RunNumber, ScopeNumber};
use flotilla_engine::rows::{EventKind, States};
use flotilla_engine::store::MemoryStore;

/// The workflow that has a loop.
const WORKFLOW: &str = "trip";
/// The loop, and how many items it has. Each iteration adds its number, from 1, to the field.
const LOOP: (&str, u64) = ("tours", 3);
const FIELD: &str = "toured";

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, run, events) in runs_of(store, WORKFLOW) {
        let iterations = Iterations::of(&events);
        if let Err(text) = iterations.judge(sum(store, number)) {
            broken.push(format!("expected {} to {text}", run.id));
        }
    }
    broken
}

/// The sum in the state of a run; `None` if the run has not written any.
fn sum(store: &MemoryStore, run: RunNumber) -> Option<u64> {
    let states = rows::<States>(store, &run).into_iter();
    let mut own = states.filter(|((_, scope), _)| *scope == ScopeNumber::ROOT);
    let (_, state) = own.next()?;
    let (_, value) = state.object.as_str().split_once(&format!("\"{FIELD}\":"))?;
    let digits = value.split(|one: char| !one.is_ascii_digit()).next()?;
    digits.parse().ok()
}

/// The iterations of a loop that have ended.
#[derive(Default)]
struct Iterations {
    /// Their indexes, in the order in which they ended.
    ended: Vec<u64>,
    /// Those of iterations that succeeded.
    succeeded: Vec<u64>,
    /// Whether the loop itself has ended.
    is_over: bool,
}

impl Iterations {
    fn of(events: &[PastEvent]) -> Self {
        let mut iterations = Self::default();
        for past in events.iter().filter(|past| past.step() == LOOP.0) {
            iterations.add(&past.event.kind);
        }
        iterations
    }

    fn add(&mut self, kind: &EventKind) {
        match kind {
            EventKind::IterationEnded { index, outcome } => {
                self.ended.push(u64::from(*index));
                if outcome.as_str() == "success" {
                    self.succeeded.push(u64::from(*index));
                }
            }
            EventKind::StepCompleted { .. } => self.is_over = true,
            _ => {}
        }
    }

    /// `Err` completes the sentence "expected the run to …".
    fn judge(&self, sum: Option<u64>) -> Result<(), String> {
        let mut ended = self.ended.clone();
        ended.sort_unstable();
        let all: Vec<u64> = (0..LOOP.1).collect();
        let is_complete = ended == all;
        let has_repeats = ended.windows(2).any(|pair| pair[0] == pair[1]);
        if has_repeats || self.is_over && !is_complete {
            return Err(format!("end iterations {all:?}, but it ended {ended:?}"));
        }
        let of_succeeded = self.succeeded.iter().map(|index| index + 1);
        // The writes go to the state when the loop ends.
        let expected = if self.is_over { of_succeeded.sum() } else { 0 };
        match sum {
            Some(sum) if sum != expected => {
                Err(format!("have the sum {expected}, but it has {sum}"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::OutcomeName;

    fn outcome(name: &str) -> OutcomeName {
        OutcomeName::new(name).expect("an outcome")
    }

    /// Judges a history with these iterations.
    fn judge(ended: &[(u32, &str)], is_over: bool, sum: Option<u64>) -> Result<(), String> {
        let mut iterations = Iterations::default();
        for (index, name) in ended {
            iterations.add(&EventKind::IterationEnded {
                index: *index,
                outcome: outcome(name),
            });
        }
        if is_over {
            iterations.add(&EventKind::StepCompleted {
                outcome: outcome("success"),
                output: None,
            });
        }
        iterations.judge(sum)
    }

    #[test]
    fn each_item_has_one_iteration_and_its_write_is_in_the_sum() {
        let all = [(1, "success"), (0, "success"), (2, "success")];
        assert_eq!(judge(&all, true, Some(6)), Ok(()));
        assert_eq!(judge(&all[..2], false, Some(0)), Ok(()));
        for (ended, is_over, sum) in [
            (&all[..2], true, 3),
            (&[&all[..], &all[..1]].concat(), true, 6),
            (&[all[0], all[0]], false, 0),
            (&all, true, 4),
            (&all, false, 6),
        ] {
            assert!(judge(ended, is_over, Some(sum)).is_err(), "{ended:?}");
        }
    }

    #[test]
    fn a_failed_iteration_writes_nothing() {
        let ended = [(0, "success"), (1, "failure"), (2, "success")];
        assert_eq!(judge(&ended, true, Some(4)), Ok(()));
        assert!(judge(&ended, true, Some(6)).is_err());
    }
}
