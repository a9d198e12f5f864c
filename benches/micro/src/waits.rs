//! Runs without workers: they complete immediately, get a signal, or wait until their timers fire.

use crate::recorder::Recorder;
use crate::recording::Recording;
use crate::requests;
use flotilla_engine::ids::{RunId, SignalType, WorkflowName};
use flotilla_engine::rows::{TimerKey, TimerKind};
use flotilla_engine::view::TimerCursor;
use flotilla_engine::{Applied, Body, FireTimer, Reply, reply};

const NO_OP: &str = "
kind: Workflow
name: no-op
version: '1'
start:
  run: '@actions/nobody-has-it'
  transitions: {target_not_found: flo.Completed, success: flo.Failed}
";

const WAIT: &str = "
kind: Workflow
name: wait
version: '1'
start:
  waitForSignal: {type: go, timeoutMs: 60000, onTimeout: flo.Completed}
  transitions: {success: flo.Completed}
";
const WAIT_MS: u64 = 60_000;

/// Runs that complete in the turn that starts them.
pub(crate) fn no_ops(runs: usize, entry_commands: usize) -> Recording {
    let mut recorder = Recorder::begin(vec![requests::create(NO_OP)]);
    NO_OP_STARTS.apply(&mut recorder, runs, entry_commands);
    recorder.expect_completed(runs);
    recorder.finish()
}

/// Runs that wait, and then a signal for each.
pub(crate) fn signals(runs: usize, entry_commands: usize) -> Recording {
    let mut recorder = Recorder::begin(vec![requests::create(WAIT)]);
    let parked = WAIT_STARTS.apply(&mut recorder, runs, entry_commands);
    let go = SignalType::new("go").expect("a legal type");
    for some in parked.chunks(entry_commands) {
        let signals = some.iter().map(|run_id| {
            let signal = requests::signal(run_id.clone(), &go);
            recorder.sent(signal)
        });
        let signals = signals.collect();
        recorder.apply("signal", Vec::new(), signals);
    }
    recorder.expect_completed(runs);
    recorder.finish()
}

/// Runs that wait, and whose timers then fall due together.
pub(crate) fn timers(runs: usize, entry_commands: usize) -> Recording {
    let mut recorder = Recorder::begin(vec![requests::create(WAIT)]);
    WAIT_STARTS.apply(&mut recorder, runs, entry_commands);
    recorder.pass(WAIT_MS);
    let due = due_waits(&recorder);
    for some in due.chunks(entry_commands) {
        let firings = some
            .iter()
            .map(|timer| requests::command(Body::FireTimer(FireTimer { timer: *timer })));
        let firings = firings.collect();
        recorder.apply("fire", Vec::new(), firings);
    }
    recorder.expect_completed(runs);
    recorder.finish()
}

/// The stage of a recording that starts runs.
struct Starts {
    stage: &'static str,
    workflow: &'static str,
}

const NO_OP_STARTS: Starts = Starts {
    stage: "start",
    workflow: "no-op",
};
const WAIT_STARTS: Starts = Starts {
    stage: "park",
    workflow: "wait",
};

impl Starts {
    /// Starts runs, a given number per entry.
    fn apply(&self, recorder: &mut Recorder, runs: usize, entry_commands: usize) -> Vec<RunId> {
        let workflow = WorkflowName::new(self.workflow).expect("a legal name");
        let mut started = Vec::with_capacity(runs);
        while started.len() < runs {
            let count = entry_commands.min(runs - started.len());
            let starts = (0..count).map(|_| recorder.sent(requests::start(&workflow)));
            let starts = starts.collect();
            let applied = recorder.apply(self.stage, Vec::new(), starts);
            started.extend(run_ids(&applied));
        }
        started
    }
}

fn run_ids(applied: &Applied) -> impl Iterator<Item = RunId> {
    let replies = applied.replies.iter();
    replies.filter_map(|reply| match reply {
        Ok(Reply::RunStarted(reply::RunStarted { run_id, .. })) => Some(run_id.clone()),
        _ => None,
    })
}

/// The due timers of waits, as a driver finds them.
fn due_waits(recorder: &Recorder) -> Vec<TimerKey> {
    let due = TimerCursor::default().due_timers(recorder.rows(), recorder.now_ms(), usize::MAX);
    let timers = due.expect("memory does not fail").timers;
    let waits = timers.into_iter();
    waits
        .filter(|timer| timer.kind == TimerKind::StepDeadline)
        .collect()
}
