//! What a run has done is undone in reverse order, and its handler is executed once after that (W80, W81, W82).

use super::rows::{PastEvent, runs_of};
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::rows::{EventKind, RunStatus};
use flotilla_engine::store::MemoryStore;

/// The workflow whose runs compensate.
const UNDONE: &str = "trip";
/// Its steps that have a compensation.
const STEPS: [&str; 6] = ["flight", "hotel", "car", "near", "far", "apply"];
/// The block that is tried again, and its step that has a compensation.
const BLOCK: (&str, &str) = ("visa", "apply");
/// The steps of the race that comes before this block: one of them loses.
const RACE: [&str; 2] = ["near", "far"];
/// The handlers of its end.
const HANDLERS: [&str; 2] = ["page", "tidy"];

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (_, run, events) in runs_of(store, UNDONE) {
        let RunStatus::Ended(status) = run.status else {
            continue;
        };
        let undo_events: Vec<UndoEvent<'_>> = events.iter().filter_map(UndoEvent::of).collect();
        if let Err(text) = judge(&undo_events, status) {
            broken.push(format!("expected {} to {text}", run.id));
        }
    }
    broken
}

/// An event that matters for the order of compensations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UndoEvent<'e> {
    /// The task of a step that has a compensation has succeeded.
    Succeeded(&'e str),
    /// A step was cancelled. If it has a handler, that is called next.
    Cancelled(&'e str),
    /// The compensation of a step has started.
    UndoStarted(&'e str),
    /// A compensation has ended, well or badly.
    UndoEnded,
    /// The block is tried again.
    BlockRetried,
    /// A step of a handler has ended.
    HandlerStepEnded(&'e str),
}

impl<'e> UndoEvent<'e> {
    fn of(past: &'e PastEvent) -> Option<Self> {
        let step = past.step();
        match &past.event.kind {
            EventKind::StepCancelled => Some(Self::Cancelled(step)),
            EventKind::CompensationStarted => Some(Self::UndoStarted(step)),
            EventKind::CompensationCompleted | EventKind::CompensationFailed { .. } => {
                Some(Self::UndoEnded)
            }
            EventKind::StepRetry { .. } if step == BLOCK.0 => Some(Self::BlockRetried),
            EventKind::ActionCompleted { outcome, .. } if STEPS.contains(&step) => {
                (outcome.as_str() == "success").then_some(Self::Succeeded(step))
            }
            EventKind::StepCompleted { .. } if HANDLERS.contains(&step) => {
                Some(Self::HandlerStepEnded(step))
            }
            _ => None,
        }
    }
}

/// `Err` says what a run should have done instead.
fn judge(undo_events: &[UndoEvent<'_>], status: TerminalStatus) -> Result<(), String> {
    // What is done is undone last to first, immediately for work that is dropped, and at the end.
    let mut done = Vec::new();
    let mut undoing = None;
    let mut handled = Vec::new();
    let mut cancelled = Vec::new();
    for event in undo_events {
        match event {
            // The tasks of a compensation and of a handler are about their step, too.
            UndoEvent::Succeeded(step) if undoing == Some(*step) || cancelled.contains(step) => {}
            UndoEvent::Cancelled(step) => cancelled.push(*step),
            UndoEvent::Succeeded(step)
                if *step == BLOCK.1 && RACE.iter().all(|one| done.contains(one)) =>
            {
                return Err("undo the loser before it continues".to_owned());
            }
            UndoEvent::Succeeded(step) => done.push(*step),
            UndoEvent::UndoEnded => undoing = None,
            UndoEvent::BlockRetried if undoing.is_some() || done.contains(&BLOCK.1) => {
                return Err(format!("undo {} before the next attempt", BLOCK.1));
            }
            UndoEvent::BlockRetried => {}
            UndoEvent::UndoStarted(step) if undoing.is_some() => {
                let before = undoing.unwrap_or_default();
                return Err(format!("undo {step} after {before}, but it did not wait"));
            }
            UndoEvent::UndoStarted(step) => match done.pop() {
                Some(last) if last == *step => undoing = Some(*step),
                last => return Err(format!("undo {last:?} next, but it undid {step}")),
            },
            UndoEvent::HandlerStepEnded(step) => handled.push(*step),
        }
    }
    if status != TerminalStatus::Completed && !done.is_empty() {
        return Err(format!("undo {done:?} too, but it did not"));
    }
    if let Some(step) = undoing {
        return Err(format!(
            "end after the compensation of {step}, but it did not"
        ));
    }
    let handler: &[&str] = match status {
        TerminalStatus::Completed => &[],
        TerminalStatus::Cancelled => &["tidy"],
        TerminalStatus::Failed | TerminalStatus::TimedOut => &["page"],
    };
    if handled != handler {
        return Err(format!(
            "execute {handler:?} at its end, but it executed {handled:?}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use UndoEvent::{BlockRetried, Cancelled, HandlerStepEnded, Succeeded, UndoEnded, UndoStarted};

    #[test]
    fn the_order_of_undoing_is_checked() {
        let failed = |undone: &[UndoEvent<'_>]| {
            let done = [Succeeded("flight"), Succeeded("car")];
            judge(
                &[&done, undone, &[HandlerStepEnded("page")]].concat(),
                TerminalStatus::Failed,
            )
        };
        // The task of a compensation is about its step, too; one that fails has ended as well.
        let car = [UndoStarted("car"), Succeeded("car"), UndoEnded];
        let flight = [UndoStarted("flight"), UndoEnded];
        assert_eq!(failed(&[&car[..], &flight].concat()), Ok(()));
        for undone in [
            &[][..],
            &car,
            &[&flight[..], &car].concat(),
            &[&car[..], &flight, &car].concat(),
            &[
                UndoStarted("car"),
                UndoStarted("flight"),
                UndoEnded,
                UndoEnded,
            ],
            &[&car[..], &[UndoStarted("flight")]].concat(),
        ] {
            assert!(failed(undone).is_err(), "{undone:?}");
        }
    }

    #[test]
    fn a_block_is_undone_before_its_next_attempt() {
        let completed = |events: &[UndoEvent<'_>]| judge(events, TerminalStatus::Completed);
        let done = [Succeeded("flight"), Succeeded("apply")];
        let undone = [UndoStarted("apply"), Succeeded("apply"), UndoEnded];
        assert_eq!(
            completed(&[&done[..], &undone, &[BlockRetried]].concat()),
            Ok(())
        );
        for undone in [&[][..], &undone[..1]] {
            assert!(completed(&[&done[..], undone, &[BlockRetried]].concat()).is_err());
        }
    }

    #[test]
    fn a_loser_is_undone_before_the_run_continues() {
        let completed = |events: &[UndoEvent<'_>]| judge(events, TerminalStatus::Completed);
        let both = [Succeeded("near"), Succeeded("far")];
        let undone = [UndoStarted("far"), UndoEnded];
        let next = [Succeeded("apply")];
        assert_eq!(completed(&[&both[..], &undone, &next].concat()), Ok(()));
        // A handler that succeeds leaves nothing to undo.
        let cancelled = [Cancelled("far"), Succeeded("far")];
        let lost = [&both[..1], &cancelled, &next].concat();
        assert_eq!(completed(&lost), Ok(()));
        assert_eq!(completed(&[&both[..1], &next].concat()), Ok(()));
        assert!(completed(&[&both[..], &next].concat()).is_err());
    }

    #[test]
    fn the_handler_of_the_end_is_checked() {
        for (status, handler) in [
            (TerminalStatus::Failed, "page"),
            (TerminalStatus::Cancelled, "tidy"),
        ] {
            assert_eq!(judge(&[HandlerStepEnded(handler)], status), Ok(()));
            for handled in [
                &[][..],
                &[HandlerStepEnded(handler); 2],
                &[HandlerStepEnded("other")],
            ] {
                assert!(judge(handled, status).is_err(), "{handled:?}");
            }
        }
        assert!(judge(&[HandlerStepEnded("page")], TerminalStatus::Completed).is_err());
        assert_eq!(
            judge(&[Succeeded("flight")], TerminalStatus::Completed),
            Ok(())
        );
    }
}
