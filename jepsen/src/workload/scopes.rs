//! Runs in which scopes are cancelled while the run continues: branches that lose, branches beside one that fails, and blocks
//! that take too long. External workers execute their steps. What a run drops is undone before it continues, and the rest at
//! its end unless it completes. Each cancelled step calls its `onCancel` once.

mod replay;

use self::replay::{Fact, Replay};
use super::calls::{
    Cancels, attempts, cancel_and_record, define, events, found_in, read_ended, run, start,
};
use super::workers;
use super::{Session, Workload};
use crate::checker::{Violation, exactly_once, numbered};
use crate::history::History;
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::RngExt;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const WORKFLOW: &str = "chaos-scopes";
/// `BOOK NAME` stands for a step with a compensation and an `onCancel`, `HANG NAME` for one that waits for a signal that
/// no client sends.
const DEFINITION: &str = "kind: Workflow
name: chaos-scopes
version: \"1.0.0\"
defaults: {retry: {max_attempts: 20, backoff: constant, initial_delay_ms: 30}}
steps:
  - BOOK first
  - name: race
    parallel:
      join: any
      branches:
        left:
          - BOOK left-one
          - BOOK left-two
        right:
          - BOOK right-one
          - BOOK right-two
        late:
          - BOOK late-one
          - HANG late-two
  - name: fan
    parallel:
      onFailure: cancel
      branches:
        good:
          - BOOK good-one
          - BOOK good-two
          - HANG good-three
        bad:
          - BOOK bad-one
          - {name: bad-two, run: \"@actions/chaos-missing\"}
    compensate: true
    transitions: {failure: dropped}
  - name: dropped
    timeoutMs: 500
    compensate: true
    block:
      - BOOK dropped-one
      - HANG dropped-two
    transitions: {timeout: kept}
  - name: kept
    timeoutMs: 500
    block:
      - BOOK kept-one
      - HANG kept-two
    transitions: {timeout: last}
  - BOOK last
  - name: decide
    switch: [{when: 'input.key.startsWith(\"failing-\")', goto: flo.Failed}]
    default: flo.Completed
";
const ACTIONS: &[&str] = &["chaos-scope"];
const PAUSE: Duration = Duration::from_millis(400);
/// How often to check whether the runs have ended, after all faults are healed.
const LOOKS_MAX: usize = 160;

/// Runs with scopes that are cancelled.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    keys: AtomicU64,
}

/// The final state of a run.
#[derive(Debug, Deserialize, Serialize)]
struct Ended {
    key: String,
    run_id: String,
    status: String,
    seqs: Vec<u64>,
    facts: Vec<Fact>,
}

impl Workload for Scopes {
    fn name(&self) -> &'static str {
        "scopes"
    }

    fn prepare(&self, flo: &Flo) {
        workers::register(flo, ACTIONS[0]);
        define(flo, &definition());
    }

    fn processes(&self) -> u64 {
        1
    }

    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let is_failing = random.random_bool(0.5);
            let is_cancelled = random.random_ratio(1, 4);
            let pause = Duration::from_millis(random.random_range(0..1_500));
            let number = self.keys.fetch_add(1, Ordering::Relaxed);
            let prefix = if is_failing { "failing" } else { "completing" };
            let key = format!("{prefix}-{number}");
            // The history has the outcome.
            if let Ok(run_id) = start(session, WORKFLOW, &key).await
                && is_cancelled
            {
                session.rest(pause).await;
                cancel_and_record(session, run_id, &key).await;
            }
            session.rest(PAUSE).await;
        }
        .boxed()
    }

    fn assist(&self, session: Session) -> BoxFuture<'static, ()> {
        workers::work_and_try(session, ACTIONS, workers::fail_first).boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        read_ended(session, WORKFLOW, LOOKS_MAX, read).boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let ended: Vec<Ended> = found_in(history, self.name());
        let starts = attempts(history, self.name(), "start");
        let cancels = Cancels::of(history, self.name());
        let found = ended
            .iter()
            .map(|run| (run.key.clone(), run.run_id.clone()));
        let mut violations = exactly_once(&starts, &found.collect::<Vec<_>>());
        let executions = workers::executions(history, self.name(), "name");
        for run in &ended {
            violations.extend(numbered(&format!("the history of {}", run.key), &run.seqs));
            let is_status_allowed = cancels.allow(&run.key, &run.status);
            if let Err(text) = run.check(is_status_allowed, &executions) {
                violations.push(Violation::new(format!("{}: {text}", run.key)));
            }
        }
        violations
    }
}

impl Ended {
    fn check(
        &self,
        is_status_allowed: bool,
        executions: &BTreeMap<(String, String), u64>,
    ) -> Result<(), String> {
        let expected = match self.key.starts_with("failing-") {
            true => "RUN_STATUS_FAILED",
            false => "RUN_STATUS_COMPLETED",
        };
        let is_expected = [expected, "RUN_STATUS_CANCELLED"].contains(&self.status.as_str());
        if !is_expected || !is_status_allowed {
            return Err(format!("it should not end with the status {}", self.status));
        }
        let replay = Replay::of(&self.facts)?;
        replay.check_end(&self.status)?;
        for name in replay.executed() {
            if !executions.contains_key(&(self.key.clone(), name.clone())) {
                return Err(format!("{name} succeeded, but no worker executed it"));
            }
        }
        Ok(())
    }
}

/// The definition with its steps written out.
fn definition() -> String {
    let call = |name: &str| {
        format!(
            "run: \"@actions/chaos-scope\", inputMapping: {{key: $.input.key, name: {name}}}, \
             retry: {{max_attempts: 20, backoff: constant, initial_delay_ms: 30}}"
        )
    };
    let line = |line: &str| {
        let Some((indent, step)) = line.split_once("- ") else {
            return line.to_owned();
        };
        let on_cancel = |name: &str| format!("onCancel: {{{}}}", call(&format!("tidy-{name}")));
        let step = if let Some(name) = step.strip_prefix("BOOK ") {
            let (own, undo) = (call(name), call(&format!("undo-{name}")));
            let on_cancel = on_cancel(name);
            format!("{{name: {name}, {own}, compensate: {{{undo}}}, {on_cancel}}}")
        } else if let Some(name) = step.strip_prefix("HANG ") {
            let on_cancel = on_cancel(name);
            format!("{{name: {name}, waitForSignal: {{type: unsent}}, {on_cancel}}}")
        } else {
            step.to_owned()
        };
        format!("{indent}- {step}")
    };
    DEFINITION.lines().map(line).collect::<Vec<_>>().join("\n")
}

async fn read(session: &Session, run_id: &str) -> Result<Ended, ClientError> {
    let run = run(&session.client, run_id).await?;
    let events = events(&session.client, run_id).await?;
    Ok(Ended {
        key: run.idempotency_key.clone().unwrap_or_default(),
        run_id: run_id.to_owned(),
        status: run.status().as_str_name().to_owned(),
        seqs: events.iter().map(|event| event.seq).collect(),
        facts: events.iter().filter_map(fact_of).collect(),
    })
}

/// What the checker reads of an event, if it is one that it judges.
fn fact_of(event: &v1::Event) -> Option<Fact> {
    let attributes: Value = serde_json::from_slice(&event.attributes).unwrap_or_default();
    let outcome = attributes["outcome"].as_str();
    replay::KINDS
        .contains(&event.r#type.as_str())
        .then(|| Fact {
            kind: event.r#type.clone(),
            scope: event.scope.clone(),
            step: event.step.clone(),
            outcome: outcome.unwrap_or(&event.detail).to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Operation, Outcome};
    use serde_json::json;

    /// A run that fails at its end: kind, scope, step and outcome, with `-` for what is empty.
    const FAILED: &str = "step_started - first -
        action_completed - first success
        step_completed - first success
        step_started - race -
        scope_started race/left - -
        step_started race/left left-one -
        scope_started race/right - -
        step_started race/right right-one -
        scope_started race/late - -
        step_started race/late late-one -
        action_completed race/left left-one success
        step_completed race/left left-one success
        step_started race/left left-two -
        action_completed race/right right-one success
        step_completed race/right right-one success
        step_started race/right right-two -
        action_completed race/right right-two success
        step_completed race/right right-two success
        scope_ended race/right - success
        branch_joined - race success
        step_cancelled race/late late-one -
        action_completed race/late late-one success
        scope_ended race/late - cancelled
        action_completed race/left left-two success
        step_cancelled race/left left-two -
        action_completed race/left left-two success
        scope_ended race/left - cancelled
        compensation_started race/left left-two -
        action_completed race/left left-two success
        compensation_completed race/left left-two -
        compensation_started race/left left-one -
        action_completed race/left left-one success
        compensation_completed race/left left-one -
        step_completed - race success
        step_started - fan -
        scope_started fan/good - -
        step_started fan/good good-one -
        scope_started fan/bad - -
        step_started fan/bad bad-one -
        action_completed fan/bad bad-one success
        step_completed fan/bad bad-one success
        step_started fan/bad bad-two -
        step_completed fan/bad bad-two target_not_found
        scope_ended fan/bad - target_not_found
        branch_joined - fan target_not_found
        step_cancelled fan/good good-one -
        action_completed fan/good good-one success
        scope_ended fan/good - cancelled
        compensation_started fan/bad bad-one -
        action_completed fan/bad bad-one success
        compensation_completed fan/bad bad-one -
        step_completed - fan failure
        step_started - dropped -
        scope_started dropped - -
        step_started dropped dropped-one -
        action_completed dropped dropped-one success
        step_completed dropped dropped-one success
        step_started dropped dropped-two -
        step_timeout - dropped -
        step_cancelled dropped dropped-two -
        action_completed dropped dropped-two success
        scope_ended dropped - cancelled
        compensation_started dropped dropped-one -
        action_completed dropped dropped-one success
        compensation_completed dropped dropped-one -
        step_completed - dropped timeout
        step_started - kept -
        scope_started kept - -
        step_started kept kept-one -
        action_completed kept kept-one success
        step_completed kept kept-one success
        step_started kept kept-two -
        step_timeout - kept -
        step_cancelled kept kept-two -
        action_completed kept kept-two success
        scope_ended kept - cancelled
        step_completed - kept timeout
        step_started - last -
        action_completed - last success
        step_completed - last success
        phase_changed - - compensating
        compensation_started - last -
        action_completed - last success
        compensation_completed - last -
        compensation_started kept kept-one -
        action_completed kept kept-one success
        compensation_completed kept kept-one -
        compensation_started race/right right-two -
        action_completed race/right right-two success
        compensation_completed race/right right-two -
        compensation_started race/right right-one -
        action_completed race/right right-one success
        compensation_completed race/right right-one -
        compensation_started - first -
        action_completed - first success
        compensation_completed - first -";
    /// The first line of `FAILED` that a completed run does not have.
    const END: &str = "phase_changed - - compensating";

    /// The first lines of `FAILED` that the cancelled run does not have: it is cancelled while it undoes the losing branch.
    const CANCELLED_FROM: &str = "action_completed race/left left-two success
        compensation_completed race/left left-two -";
    /// The lines that replace the rest of `FAILED`.
    const CANCELLED: &str = "step_cancelled - race -
        phase_changed - - cancelling
        action_completed race/left left-two success
        compensation_completed race/left left-two -
        phase_changed - - compensating
        compensation_started race/right right-two -
        action_completed race/right right-two success
        compensation_completed race/right right-two -
        compensation_started race/right right-one -
        action_completed race/right right-one success
        compensation_completed race/right right-one -
        compensation_started race/left left-one -
        action_completed race/left left-one success
        compensation_completed race/left left-one -
        compensation_started - first -
        action_completed - first success
        compensation_completed - first -";

    fn trimmed(text: &str) -> String {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.join("\n")
    }

    /// The lines of `FAILED`, with `old` replaced by `new`.
    fn changed(old: &str, new: &str) -> String {
        let (sound, old) = (trimmed(FAILED), trimmed(old));
        assert_eq!(sound.matches(&old).count(), 1, "{old}");
        sound.replace(&old, &trimmed(new))
    }

    fn completed() -> String {
        let sound = trimmed(FAILED);
        let end = sound.find(END).expect("an end");
        sound[..end].to_owned()
    }

    fn cancelled() -> String {
        let sound = trimmed(FAILED);
        let from = sound.find(&trimmed(CANCELLED_FROM)).expect("the line");
        sound[..from].to_owned() + &trimmed(CANCELLED)
    }

    fn fact(line: &str) -> Fact {
        let mut words = line.split(' ').map(|word| match word {
            "-" => String::new(),
            word => word.to_owned(),
        });
        let mut word = || words.next().unwrap_or_default();
        Fact {
            kind: word(),
            scope: word(),
            step: word(),
            outcome: word(),
        }
    }

    /// The history of one run with these events and this status, without its prefix. The key of a failed run begins with
    /// `failing-`.
    fn history(text: &str, status: &str) -> History {
        let key = match status {
            "FAILED" => "failing-1",
            _ => "completing-1",
        };
        let operation = |name: &str, input: Value| Operation {
            name: name.to_owned(),
            input,
            ..Operation::sample("scopes", Outcome::Ok)
        };
        let facts: Vec<Fact> = text.lines().map(fact).collect();
        let executed = facts
            .iter()
            .flat_map(|fact| ["", "undo-", "tidy-"].map(|prefix| format!("{prefix}{}", fact.step)));
        let executed = executed.map(|name| json!({"key": key, "name": name}));
        let mut operations: Vec<Operation> =
            executed.map(|input| operation("execute", input)).collect();
        operations.push(operation("start", json!({"key": key})));
        if status == "CANCELLED" {
            operations.push(operation("cancel", json!({"key": key})));
        }
        let ended = json!([{"key": key, "run_id": "r", "status": format!("RUN_STATUS_{status}"),
            "seqs": [1, 2], "facts": facts}]);
        History {
            operations,
            final_reads: BTreeMap::from([("scopes".to_owned(), ended)]),
            ..History::default()
        }
    }

    fn is_sound(text: &str, status: &str) -> bool {
        Scopes::default().check(&history(text, status)).is_empty()
    }

    #[test]
    fn sound_runs_are_accepted_only_with_their_status() {
        let runs = [
            (trimmed(FAILED), "FAILED"),
            (completed(), "COMPLETED"),
            (cancelled(), "CANCELLED"),
        ];
        for (text, status) in runs {
            for other in ["FAILED", "COMPLETED", "CANCELLED", "WAITING"] {
                assert_eq!(is_sound(&text, other), other == status, "{status} {other}");
            }
        }
    }

    #[test]
    fn every_lost_and_every_repeated_event_is_found() {
        for (text, status) in [(trimmed(FAILED), "FAILED"), (cancelled(), "CANCELLED")] {
            let sound: Vec<&str> = text.lines().collect();
            for (at, line) in sound.iter().enumerate() {
                let lost = [&sound[..at], &sound[at + 1..]].concat();
                // The phase is optional: a cancel that has nothing to wait for skips it.
                let is_optional = *line == "phase_changed - - cancelling";
                let is_found = !is_sound(&lost.join("\n"), status);
                assert!(is_found || is_optional, "lost: {line}");
                let repeated = [&sound[..=at], &sound[at..]].concat();
                assert!(!is_sound(&repeated.join("\n"), status), "twice: {line}");
            }
        }
    }

    /// What is wrong with the failed run if it has these lines instead of others.
    fn reason(old: &str, new: &str) -> String {
        let violations = Scopes::default().check(&history(&changed(old, new), "FAILED"));
        let reasons: Vec<&str> = violations.iter().map(|one| one.0.as_str()).collect();
        reasons.join("; ")
    }

    fn undo(scope: &str, step: &str) -> String {
        format!(
            "compensation_started {scope} {step} -
            action_completed {scope} {step} success
            compensation_completed {scope} {step} -\n"
        )
    }

    #[test]
    fn what_is_undone_at_the_wrong_time_is_found() {
        let is_found = |old: &[&str], new: &[&str], expected: &str| {
            let reason = reason(&old.concat(), &new.concat());
            assert!(reason.contains(expected), "{reason}");
        };
        let (one, two) = (
            &*undo("race/left", "left-one"),
            &*undo("race/left", "left-two"),
        );
        let (kept, won) = (
            &*undo("kept", "kept-one"),
            &*undo("race/right", "right-two"),
        );
        let race_ends = "step_completed - race success\n";
        let kept_ends = "step_completed - kept timeout\n";
        let loser_ends = "scope_ended race/left - cancelled\n";
        let order = "the next compensation due";
        // In the wrong order, while the run continues and at its end.
        is_found(
            &[two, one],
            &[one, two],
            "due is that of Some((\"race/left\", \"left-two\"))",
        );
        is_found(
            &[kept, won],
            &[won, kept],
            "due is that of Some((\"kept\", \"kept-one\"))",
        );
        // After the step that drops it has ended, or not at all.
        is_found(&[one, race_ends], &[race_ends, one], "is not undone");
        is_found(&[one], &[], "(\"race/left\", \"left-one\")) is not undone");
        // The winner, and what is kept, before the end of the run.
        is_found(&[race_ends], &[won, race_ends], order);
        is_found(&[kept_ends], &[kept, kept_ends], order);
        // Before the loser has ended.
        is_found(&[loser_ends, two], &[two, loser_ends], "scopes are open");
    }

    #[test]
    fn what_begins_or_ends_in_a_cancelled_scope_is_found() {
        let is_found = |old: &str, new: &[&str], expected: &str| {
            let reason = reason(old, &new.join("\n"));
            assert!(reason.contains(expected), "{reason}");
        };
        let cancelling = "its scope is being cancelled";
        let cancelled = "step_cancelled dropped dropped-two -";
        let started = "step_started dropped dropped-three -";
        is_found(cancelled, &[started, cancelled], cancelling);
        is_found(cancelled, &[cancelled, started], cancelling);
        let completed = "step_completed dropped dropped-two success";
        is_found(cancelled, &[completed], cancelling);
        let ended = "scope_ended dropped - cancelled";
        let succeeded = "scope_ended dropped - success";
        is_found(ended, &[succeeded], "a scope is cancelled if it ends so");
        is_found(ended, &[ended, started], "the scope dropped is not open");
        let failed = "branch_joined - fan target_not_found";
        let begun = "scope_started fan/other - -";
        is_found(failed, &[failed, begun], cancelling);
    }

    #[test]
    fn an_accepted_cancel_that_is_forgotten_is_found() {
        for (is_accepted, violations) in [(true, 1), (false, 0)] {
            let mut completed = history(&completed(), "COMPLETED");
            completed.operations.push(Operation {
                name: "cancel".to_owned(),
                input: json!({"key": "completing-1"}),
                output: json!({"is_accepted": is_accepted}),
                ..Operation::sample("scopes", Outcome::Ok)
            });
            assert_eq!(Scopes::default().check(&completed).len(), violations);
        }
    }

    #[test]
    fn a_part_of_the_workflow_that_is_left_out_is_found() {
        let of = |part: &'static str| {
            move |line: &&str| !line.split(' ').any(|word| word.starts_with(part))
        };
        for part in ["fan", "dropped", "kept", "race/late"] {
            let text = completed();
            let rest: Vec<&str> = text.lines().filter(of(part)).collect();
            assert!(!is_sound(&rest.join("\n"), "COMPLETED"), "{part}");
        }
    }

    #[test]
    fn what_no_worker_has_executed_is_found() {
        for name in ["first", "undo-first", "undo-left-one", "tidy-kept-two"] {
            let mut lost = history(&trimmed(FAILED), "FAILED");
            lost.operations.retain(|one| one.input["name"] != name);
            assert_eq!(Scopes::default().check(&lost).len(), 1, "{name}");
        }
    }
}
