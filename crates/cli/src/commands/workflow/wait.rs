//! Waiting for a run's end.

use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::views;
use flotilla_client::v1::{RunStatus, RunStatusChange, WatchRunRequest};
use flotilla_client::{Client, WatchUpdate};
use futures::TryStreamExt;

/// Watches a run to its end and prints its output.
///
/// # Errors
/// `run_not_completed` when it ended in another way than completed.
pub(crate) async fn until_end(
    client: &Client,
    run_id: String,
    output: Output,
) -> Result<(), Failure> {
    let end = {
        let progress = Progress::start(format!("{run_id} started"));
        watch(client, &run_id, &progress).await?
    };
    conclude(&run_id, &end)?;
    output.json_text(end.output.as_deref().unwrap_or(b"null"))
}

async fn watch(
    client: &Client,
    run_id: &str,
    progress: &Progress,
) -> Result<RunStatusChange, Failure> {
    let mut updates = client.watch_run(WatchRunRequest {
        run_id: run_id.to_owned(),
        ..WatchRunRequest::default()
    });
    let mut step = String::new();
    while let Some(update) = updates.try_next().await? {
        let is_last = update.is_last();
        match update {
            WatchUpdate::Event(event) if !event.step.is_empty() => step = event.step,
            WatchUpdate::Event(_) => {}
            WatchUpdate::Status(status) if is_last => return Ok(status),
            WatchUpdate::Status(status) => {
                let status = views::name(status.status());
                progress.say(format!("{run_id} {status}: {step}"));
            }
        }
    }
    let message = format!("expected to see the end of run {run_id}, but the stream stopped");
    Err(Failure::refused("stream_ended", message))
}

fn conclude(run_id: &str, end: &RunStatusChange) -> Result<(), Failure> {
    if end.status() == RunStatus::Completed {
        return Ok(());
    }
    let mut message = format!(
        "expected run {run_id} to complete, but it ended {}",
        views::name(end.status())
    );
    let terminal = end
        .terminal
        .iter()
        .map(|terminal| format!(" at {terminal}"));
    let detail = end.detail.iter().map(|detail| format!(": {detail}"));
    message.extend(terminal.chain(detail));
    Err(Failure::refused("run_not_completed", message)
        .with_hint(format!("flo workflow history {run_id} tells how")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::expect;

    #[test]
    fn only_a_run_that_completed_is_a_success() {
        let end = |status: RunStatus| RunStatusChange {
            status: status.into(),
            terminal: Some("flo.Failed".to_owned()),
            detail: Some("no transition".to_owned()),
            ..RunStatusChange::default()
        };
        assert_eq!(conclude("wfrun-1", &end(RunStatus::Completed)), Ok(()));
        for status in [RunStatus::Failed, RunStatus::Cancelled, RunStatus::TimedOut] {
            let failure = conclude("wfrun-1", &end(status)).expect_err("not completed");
            assert_eq!(failure.code(), "run_not_completed");
        }
        let failure = conclude("wfrun-1", &end(RunStatus::Failed)).expect_err("failed");
        expect![[r#"
            error: expected run wfrun-1 to complete, but it ended failed at flo.Failed: no transition
            hint: flo workflow history wfrun-1 tells how
        "#]]
        .assert_eq(&failure.render(Format::Text));
    }
}
