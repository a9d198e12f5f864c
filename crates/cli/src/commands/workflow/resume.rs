//! `flo workflow resume`.

use super::revision_argument::RevisionArgument;
use super::wait::Waiting;
use crate::failure::Failure;
use crate::json_argument;
use crate::session::Session;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::v1::ResumeRunRequest;
use serde::Serialize;

/// Continue a run that has failed, timed out or was cancelled
///
/// The run continues where it has stopped: steps that succeeded keep their results, and the steps
/// at which it has stopped are entered again, in all branches and iterations. Child runs that did
/// not complete are resumed too. A run whose steps were undone at its end cannot be resumed.
///
/// If the definition has a mistake, correct it, create a new revision, and resume the run with
/// --latest. The new revision must have the same steps: names, kinds, targets, blocks and order. If
/// completed steps may have to be undone, it must also keep every compensation. Everything else can
/// change. With --force, the steps can differ, but the revision must have the steps at which the
/// run stopped and the steps that it may have to undo. The results of removed steps are dropped.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow resume wfrun-1\n  flo workflow resume wfrun-1 --from charge --wait\n  flo workflow resume wfrun-1 --latest\n  flo workflow resume wfrun-1 --latest --force\n  flo workflow resume wfrun-1 --version 1.0.0 --revision 2"
)]
pub(crate) struct Resume {
    /// Id of the run
    run: String,

    /// Step to continue with: a top-level step that the run has visited. If it succeeded, it is
    /// executed again, with all its branches. Required if a step that succeeded led to the end of
    /// the run
    #[arg(long, value_name = "STEP", value_parser = NonEmptyStringValueParser::new())]
    from: Option<String>,

    /// Continue with the latest revision of the workflow, which must have the same steps unless
    /// --force is given [default: the revision of the run]
    #[arg(long, group = "other_revision", conflicts_with = "revision")]
    latest: bool,

    /// Continue with the newest revision of this version, which must have the same steps unless
    /// --force is given [default: the revision of the run]
    #[arg(long, group = "other_revision", value_parser = NonEmptyStringValueParser::new())]
    version: Option<String>,

    #[command(flatten)]
    revision: RevisionArgument,

    /// Accept a revision whose steps differ, if it has the steps that the run needs to continue.
    /// Requires --latest or --version
    #[arg(long, requires = "other_revision")]
    force: bool,

    /// New metadata of the run: a JSON object, @FILE, or - for stdin [default: keep the metadata
    /// of the run]
    #[arg(long, value_name = "JSON|@FILE|-")]
    metadata: Option<String>,

    #[command(flatten)]
    waiting: Waiting,
}

#[derive(Debug, Serialize)]
struct ResumedView {
    run_id: String,
    step: Option<String>,
    queued: bool,
    version: String,
    revision: u32,
    revised: bool,
    #[serde(skip)]
    asks_for_revision: bool,
}

impl Resume {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let asks_for_revision = self.latest || self.version.is_some();
        let request = ResumeRunRequest {
            run_id: self.run.clone(),
            from: self.from.unwrap_or_default(),
            latest: self.latest,
            version: self.version.unwrap_or_default(),
            revision: self.revision.number(),
            force: self.force,
            metadata: json_argument::read_optional(self.metadata.as_deref())?,
            ..ResumeRunRequest::default()
        };
        let client = session.client()?;
        let response = client.resume_run(request).await?;
        let view = ResumedView {
            run_id: self.run,
            step: Some(response.step).filter(|step| !step.is_empty()),
            queued: response.queued,
            version: response.version,
            revision: response.revision,
            revised: response.revised,
            asks_for_revision,
        };
        if !self.waiting.wait {
            return session.output.value(&view, ResumedView::text);
        }
        session.output.note(&view.text());
        self.waiting.print_end(session, &client, &view.run_id).await
    }
}

impl ResumedView {
    fn text(&self) -> String {
        let run_id = &self.run_id;
        let at = self.step.as_ref().map(|step| format!(" at step {step}"));
        let at = at.unwrap_or_default();
        let queued = match self.queued {
            true => ", waiting for its concurrency keys or locks",
            false => "",
        };
        let (version, revision) = (&self.version, self.revision);
        let with = match (self.asks_for_revision, self.revised) {
            (false, _) => String::new(),
            (true, true) => format!(" with version {version} revision {revision}"),
            (true, false) => format!(" with version {version} revision {revision} (unchanged)"),
        };
        format!("{run_id} resumed{at}{with}{queued}")
    }
}
