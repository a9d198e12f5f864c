//! Waiting for a run's end.

use super::activity::Activity;
use crate::code::Code;
use crate::failure::Failure;
use crate::period;
use crate::progress::Progress;
use crate::views;
use bytes::Bytes;
use flotilla_client::v1::{RunStatus, RunStatusChange, WatchRunRequest};
use flotilla_client::{Client, WatchUpdate};
use futures::TryStreamExt;
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;

/// Watches a run to its end, at most for `limit`, and returns its output, JSON.
///
/// # Errors
/// `run_not_completed` when it ended in another way than completed, `wait_timeout` when it did not
/// end in time.
pub(super) async fn until_end(
    client: &Client,
    run_id: &str,
    limit: Option<Duration>,
) -> Result<Bytes, Failure> {
    let mut activity = Activity::default();
    let end = watch(client, run_id, &mut activity);
    let end = match limit {
        None => end.await?,
        Some(limit) => match timeout(limit, end).await {
            Ok(end) => end?,
            Err(_elapsed) => return Err(unfinished(run_id, limit, &activity)),
        },
    };
    conclude(run_id, end)
}

async fn watch(
    client: &Client,
    run_id: &str,
    activity: &mut Activity,
) -> Result<RunStatusChange, Failure> {
    let progress = Progress::start(format!("{run_id} started"));
    let mut updates = client.watch_run(WatchRunRequest {
        run_id: run_id.to_owned(),
        ..WatchRunRequest::default()
    });
    while let Some(update) = updates.try_next().await? {
        let is_last = update.is_last();
        match update {
            WatchUpdate::Event(event) => activity.observe(&event),
            WatchUpdate::Status(status) if is_last => return Ok(status),
            WatchUpdate::Status(status) => {
                if let Some(detail) = status.detail.filter(|detail| !detail.is_empty()) {
                    activity.explain(&detail);
                }
            }
        }
        let doing = activity.to_string();
        if !doing.is_empty() {
            progress.say(format!("{run_id}: {doing}"));
        }
    }
    let message = format!("expected to see the end of run {run_id}, but the stream stopped");
    Err(Failure::new(Code::StreamEnded, message))
}

fn unfinished(run_id: &str, limit: Duration, activity: &Activity) -> Failure {
    let mut message = format!(
        "expected run {run_id} to end within {}, but it goes on",
        period::show(limit)
    );
    let activity = activity.to_string();
    if !activity.is_empty() {
        message.push_str(&format!(", {activity}"));
    }
    Failure::new(Code::WaitTimeout, message).with_hint(format!(
        "flo workflow history {run_id} --follow waits on, flo workflow status {run_id} looks"
    ))
}

fn conclude(run_id: &str, end: RunStatusChange) -> Result<Bytes, Failure> {
    if end.status() == RunStatus::Completed {
        return Ok(end.output.unwrap_or(Bytes::from_static(b"null")));
    }
    let mut message = format!(
        "expected run {run_id} to complete, but it ended {}",
        views::name(end.status())
    );
    let terminal = end
        .terminal
        .iter()
        .map(|terminal| format!(" at {terminal}"));
    let detail = end.detail.clone().or_else(|| step_error(&end));
    let detail = detail.map(|detail| format!(": {detail}"));
    message.extend(terminal.chain(detail));
    Err(Failure::new(Code::RunNotCompleted, message)
        .with_hint(format!("flo workflow history {run_id} tells how")))
}

/// The error of the step that was left last, which a run that failed has as its output (W10a).
fn step_error(end: &RunStatusChange) -> Option<String> {
    let output: Value = serde_json::from_slice(end.output.as_deref()?).ok()?;
    Some(output["error"]["message"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;
    use flotilla_client::v1::Event;

    #[test]
    fn only_a_run_that_completed_is_a_success() {
        let end = |status: RunStatus| RunStatusChange {
            status: status.into(),
            terminal: Some("flo.Failed".to_owned()),
            detail: Some("no transition".to_owned()),
            ..RunStatusChange::default()
        };
        let output = conclude("wfrun-1", end(RunStatus::Completed));
        assert_eq!(output, Ok(Bytes::from_static(b"null")));
        for status in [RunStatus::Failed, RunStatus::Cancelled, RunStatus::TimedOut] {
            let failure = conclude("wfrun-1", end(status)).expect_err("not completed");
            assert_eq!(failure.code(), "run_not_completed");
        }
        let failure = conclude("wfrun-1", end(RunStatus::Failed)).expect_err("failed");
        expect![[r#"
            error: expected run wfrun-1 to complete, but it ended failed at flo.Failed: no transition
            hint: flo workflow history wfrun-1 tells how
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn a_run_without_a_detail_fails_with_the_error_of_its_last_step() {
        let end = RunStatusChange {
            status: RunStatus::Failed.into(),
            terminal: Some("flo.Failed".to_owned()),
            output: Some(r#"{"error":{"code":"failure","message":"card refused"}}"#.into()),
            ..RunStatusChange::default()
        };
        let failure = conclude("wfrun-1", end).expect_err("failed");
        expect![[r#"
            error: expected run wfrun-1 to complete, but it ended failed at flo.Failed: card refused
            hint: flo workflow history wfrun-1 tells how
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn a_wait_that_is_over_says_that_the_run_goes_on() {
        let mut activity = Activity::default();
        activity.observe(&Event {
            r#type: "waiting_for_signal".to_owned(),
            step: "approve".to_owned(),
            detail: "approval".to_owned(),
            ..Event::default()
        });
        let failure = unfinished("wfrun-1", Duration::from_secs(5), &activity);
        expect![[r#"
            error: expected run wfrun-1 to end within 5s, but it goes on, step approve: waits for signal "approval"
            hint: flo workflow history wfrun-1 --follow waits on, flo workflow status wfrun-1 looks
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }
}
