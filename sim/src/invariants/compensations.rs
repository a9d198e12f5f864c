//! What a run has done is undone in reverse order, and its handler is executed once after that (W80, W81, W82).

use super::rows::{PastEvent, definition, events_of, rows};
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::rows::{EventKind, RunStatus, Runs};
use flotilla_engine::store::MemoryStore;

/// The workflow whose runs compensate.
const UNDONE: &str = "trip";
/// Its steps that have a compensation.
const STEPS: [&str; 6] = ["flight", "hotel", "car", "near", "far", "apply"];

/// The handlers of its end.
const HANDLERS: [&str; 2] = ["page", "tidy"];

pub(super) fn check(store: &MemoryStore) -> Vec<String> {
    let mut broken = Vec::new();
    for (number, run) in rows::<Runs>(store, &()) {
        let RunStatus::Ended(status) = run.status else {
            continue;
        };
        if definition(store, run.definition).name.as_str() == UNDONE {
            let events = events_of(store, number, &run);
            let said: Vec<Said<'_>> = events.iter().filter_map(Said::of).collect();
            if let Err(text) = judge(&said, status) {
                broken.push(format!("expected {} to {text}", run.id));
            }
        }
    }
    broken
}

/// What an event says about undoing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said<'e> {
    /// The task of a step that has a compensation has succeeded.
    Done(&'e str),
    /// The compensation of a step has started.
    Undone(&'e str),
    /// A step of a handler has ended.
    Handled(&'e str),
}

impl<'e> Said<'e> {
    fn of(past: &'e PastEvent) -> Option<Self> {
        let step = past.step();
        match &past.event.kind {
            EventKind::CompensationStarted => Some(Self::Undone(step)),
            EventKind::ActionCompleted { outcome, .. } if STEPS.contains(&step) => {
                (outcome.as_str() == "success").then_some(Self::Done(step))
            }
            EventKind::StepCompleted { .. } if HANDLERS.contains(&step) => {
                Some(Self::Handled(step))
            }
            _ => None,
        }
    }
}

/// `Err` says what a run should have done instead.
fn judge(said: &[Said<'_>], status: TerminalStatus) -> Result<(), String> {
    // What is done is undone last to first, immediately for work that is dropped, and at the end.
    let mut done = Vec::new();
    let mut undoing = None;
    let mut handled = Vec::new();
    for event in said {
        match event {
            // The task of a compensation is about its step, too.
            Said::Done(step) if undoing == Some(*step) => undoing = None,
            Said::Done(step) => done.push(*step),
            Said::Undone(step) => match done.pop() {
                Some(last) if last == *step => undoing = Some(*step),
                last => return Err(format!("undo {last:?} next, but it undid {step}")),
            },
            Said::Handled(step) => handled.push(*step),
        }
    }
    if status != TerminalStatus::Completed && !done.is_empty() {
        return Err(format!("undo {done:?} too, but it did not"));
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
    use Said::{Done, Handled, Undone};

    #[test]
    fn the_order_of_undoing_is_checked() {
        let failed = |undone: &[Said<'_>]| {
            let done = [Done("flight"), Done("car")];
            judge(
                &[&done, undone, &[Handled("page")]].concat(),
                TerminalStatus::Failed,
            )
        };
        let undone = [Undone("car"), Done("car"), Undone("flight"), Done("flight")];
        assert_eq!(failed(&undone), Ok(()));
        for undone in [
            &[][..],
            &[Undone("car")],
            &[Undone("flight"), Undone("car")],
            &[Undone("car"), Undone("flight"), Undone("car")],
        ] {
            assert!(failed(undone).is_err(), "{undone:?}");
        }
    }

    #[test]
    fn the_handler_of_the_end_is_checked() {
        for (status, handler) in [
            (TerminalStatus::Failed, "page"),
            (TerminalStatus::Cancelled, "tidy"),
        ] {
            assert_eq!(judge(&[Handled(handler)], status), Ok(()));
            for handled in [&[][..], &[Handled(handler); 2], &[Handled("other")]] {
                assert!(judge(handled, status).is_err(), "{handled:?}");
            }
        }
        assert!(judge(&[Handled("page")], TerminalStatus::Completed).is_err());
        assert_eq!(judge(&[Done("flight")], TerminalStatus::Completed), Ok(()));
    }
}
