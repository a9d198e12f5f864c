//! The tasks of the steps of a tree: workers take them, and report on them later.

use super::block_trees::{entry, play_entry, try_to_play};
use super::moves::OfferPlan;
use super::player::{Player, command, offer};
use crate::invariants::rows;
use crate::samples;
use flotilla_engine::ids::ActionName;
use flotilla_engine::json::Json;
use flotilla_engine::rows::{ActionRunStatus, ActionRuns, Ready};
use flotilla_engine::{AssignTasks, Body, FailKind, FailTask, FailureOutcome, TaskToken};

/// A worker takes a task or reports success on one that it holds: in turn the last one and the first one.
pub(super) fn work(player: &mut Player, is_last: bool) {
    let take = |player: &mut Player| take(player, &ActionName::new("a").expect("a name"));
    if (is_last || player.tokens.is_empty()) && take(player) {
        return;
    }
    let is_reported = report(player, is_last, |token| {
        samples::plain_completion(token, Json::null())
    });
    assert!(is_reported || take(player), "a task can be taken or ended");
}

/// The task that a worker has taken last fails, and so does the step, although its block could be tried again.
pub(super) fn fail_last(player: &mut Player) {
    report(player, true, |token| failure(token, FailKind::NonRetryable));
}

/// All tasks that workers hold fail for good.
pub(super) fn fail_all(player: &mut Player) {
    while report(player, true, |token| failure(token, FailKind::NoRetry)) {}
}

/// A report that a task has failed.
pub(super) fn failure(token: TaskToken, kind: FailKind) -> Body {
    Body::FailTask(FailTask {
        token,
        kind,
        code: None,
        message: "stopped".to_owned(),
        outcome: FailureOutcome::Failure,
        not_before: None,
        state_patch: None,
        usage: None,
    })
}

/// How many tasks have succeeded.
pub(super) fn completed_count(player: &Player) -> usize {
    let tasks = rows::<ActionRuns>(&player.store, &()).into_iter();
    let completed = tasks.filter(|(_, task)| task.status == ActionRunStatus::Completed);
    completed.count()
}

/// Offers the slots of one worker after another until one takes a task of an action. False if there is none to take.
pub(super) fn take(player: &mut Player, action: &ActionName) -> bool {
    let held_count = player.tokens.len();
    for worker in 0..3 {
        if rows::<Ready>(&player.store, &()).is_empty() || player.tokens.len() > held_count {
            break;
        }
        let mut entry = entry(player);
        let plan = OfferPlan {
            worker,
            labels: 0,
            slots: 1,
        };
        entry.offers.push(offer(u64::from(worker), &plan));
        let action = action.clone();
        let assign = Body::AssignTasks(AssignTasks { action });
        entry.commands.push(command(assign));
        play_entry(player, &entry);
    }
    player.tokens.len() > held_count
}

/// Reports on the last or the first task that a worker holds. False if workers hold none.
fn report(player: &mut Player, is_last: bool, body: impl Fn(TaskToken) -> Body) -> bool {
    while !player.tokens.is_empty() {
        let position = if is_last { player.tokens.len() - 1 } else { 0 };
        let token = player.tokens.remove(position);
        // A forced cancel has ended it, or its worker has reported on it.
        if try_to_play(player, body(token)).is_ok() {
            return true;
        }
    }
    false
}
