//! `flo workflow output`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::v1::GetStepOutputRequest;

/// Print the output of a step of a run
///
/// `flo workflow status` leaves out outputs if a run has too many of them. This command prints one,
/// whatever its size; null if the step has no output.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  flo workflow output wfrun-1 charge\n  \
                  flo workflow output wfrun-1 charge --scope 'orders[3]' --visit 2")]
pub(crate) struct Output {
    /// Id of the run
    run: String,

    /// Name of the step
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    step: String,

    /// Path of the step's scope, as `flo workflow report` shows it [default: the scope in which the run left the step last]
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    scope: Option<String>,

    /// Visit to the step, counted in its scope [default: the last one that has ended]
    #[arg(long, value_name = "N")]
    visit: Option<u32>,
}

impl Output {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = GetStepOutputRequest {
            run_id: self.run,
            step: self.step,
            scope: self.scope.unwrap_or_default(),
            visit: self.visit,
            ..GetStepOutputRequest::default()
        };
        let found = session.client()?.get_step_output(request).await?;
        let output = found.output.as_deref().unwrap_or(b"null");
        session.output.json_text(output)
    }
}
