//! Waiting for the end of a run.

use super::activity::Activity;
use crate::code::Code;
use crate::failure::Failure;
use crate::period;
use crate::progress::Progress;
use crate::session::Session;
use crate::views;
use bytes::Bytes;
use clap::Args;
use flotilla_client::v1::{RunStatus, RunStatusChange};
use flotilla_client::{Client, ClientCode, ClientError, ErrorKind, WatchUpdate};
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// Whether and how long a command waits for the end of the run.
#[derive(Debug, Args)]
pub(super) struct Waiting {
    /// Wait until the run ends and print its output
    #[arg(long)]
    pub(super) wait: bool,

    /// Maximum time to wait; on expiry the exit code is 4 and the run continues [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = period::parse, requires = "wait")]
    wait_timeout: Option<Duration>,
}

impl Waiting {
    /// Waits until the run ends, and prints its output.
    pub(super) async fn print_end(
        &self,
        session: &Session,
        client: &Client,
        run_id: &str,
    ) -> Result<(), Failure> {
        let result = until_end(client, run_id, self.wait_timeout).await?;
        session.output.json_text(&result)
    }
}

/// Watches a run until it ends, for at most `limit`, and returns its output as JSON.
///
/// # Errors
/// `run_not_completed` if it ended with another status than completed, `wait_timeout` if it did not
/// end in time, or the error of the watch itself; the run continues in the last two cases.
async fn until_end(
    client: &Client,
    run_id: &str,
    limit: Option<Duration>,
) -> Result<Bytes, Failure> {
    let mut activity = Activity::default();
    let progress = Progress::start(format!("{run_id} started"));
    let deadline = limit.map(|limit| Instant::now() + limit);
    let observe = |update: &WatchUpdate| {
        activity.see(update);
        let doing = activity.to_string();
        if !doing.is_empty() {
            progress.say(format!("{run_id}: {doing}"));
        }
    };
    let end = client.wait_for_run(run_id, deadline, observe).await;
    match (end, limit) {
        (Ok(end), _) => conclude(run_id, end),
        (Err(error), Some(limit)) if error.code() == ClientCode::WaitTimeout.as_str() => {
            Err(unfinished(run_id, limit, &activity))
        }
        (Err(error), _) => Err(lost_sight(run_id, error)),
    }
}

fn unfinished(run_id: &str, limit: Duration, activity: &Activity) -> Failure {
    let mut message = format!(
        "expected run {run_id} to end within {}, but it has not ended",
        period::show(limit)
    );
    let activity = activity.to_string();
    if !activity.is_empty() {
        message.push_str(&format!(", {activity}"));
    }
    Failure::new(Code::WaitTimeout, message).with_hint(how_to_look(run_id))
}

/// The failure when the watch is lost: temporarily, or because the run does not exist.
fn lost_sight(run_id: &str, error: ClientError) -> Failure {
    let is_passing = match error.kind() {
        ErrorKind::Retryable | ErrorKind::Unknown | ErrorKind::ConnectionFailed => true,
        ErrorKind::NotFound | ErrorKind::Usage | ErrorKind::Refused => false,
    };
    let failure = Failure::from(error);
    if !is_passing {
        return failure;
    }
    let hint = how_to_look(run_id);
    failure.with_hint(format!(
        "run {run_id} continues once the cluster serves again: {hint}"
    ))
}

fn how_to_look(run_id: &str) -> String {
    format!(
        "flo workflow history {run_id} --follow waits for its end, flo workflow status {run_id} shows its state"
    )
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
        .with_hint(format!("flo workflow history {run_id} shows why")))
}

/// The error of the last step, which is the output of a failed run (W10a).
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
            hint: flo workflow history wfrun-1 shows why
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
            hint: flo workflow history wfrun-1 shows why
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn a_wait_that_times_out_says_that_the_run_continues() {
        let mut activity = Activity::default();
        activity.observe(&Event {
            r#type: "waiting_for_signal".to_owned(),
            step: "approve".to_owned(),
            detail: "approval".to_owned(),
            ..Event::default()
        });
        let failure = unfinished("wfrun-1", Duration::from_secs(5), &activity);
        expect![[r#"
            error: expected run wfrun-1 to end within 5s, but it has not ended, step approve: waits for signal "approval"
            hint: flo workflow history wfrun-1 --follow waits for its end, flo workflow status wfrun-1 shows its state
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn a_cluster_that_tells_no_more_does_not_mean_that_the_run_ended() {
        let outage = ClientError::new(ClientCode::StreamLost, "expected an answer, but none");
        expect![[r#"
            error: expected an answer, but none
            hint: run wfrun-1 continues once the cluster serves again: flo workflow history wfrun-1 --follow waits for its end, flo workflow status wfrun-1 shows its state
        "#]]
        .assert_eq(&lost_sight("wfrun-1", outage).render(Format::Text));
        let bug = ClientError::new(ClientCode::WatchEnded, "expected a last status, but none");
        expect![[r#"
            error: expected a last status, but none
        "#]]
        .assert_eq(&lost_sight("wfrun-1", bug).render(Format::Text));
    }
}
