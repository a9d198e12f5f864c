//! `flo workflow signal`.

use crate::failure::Failure;
use crate::json_argument;
use crate::session::Session;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use flotilla_client::v1::SignalRunRequest;
use serde::Serialize;

/// Send a signal to a run
///
/// A signal ends the wait for its type that began first. With --scope, it ends only a wait in that
/// scope. A signal that arrives before its wait is kept. A second signal with the same --id has no
/// effect.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  flo workflow signal wfrun-1 --type approval '{\"by\": \"ada\"}'\n  \
                  flo workflow signal wfrun-1 --type paid --scope 'each[3]'"
)]
pub(crate) struct Signal {
    /// Id of the run
    run: String,

    /// Type of the signal
    #[arg(long = "type", value_name = "TYPE")]
    signal_type: String,

    /// Payload: JSON, @FILE, or - for stdin [default: {}]
    #[arg(value_name = "JSON|@FILE|-")]
    payload: Option<String>,

    /// Path of the scope to signal, as `flo workflow status` shows it [default: any]
    #[arg(long, value_name = "PATH", value_parser = NonEmptyStringValueParser::new())]
    scope: Option<String>,

    /// Id of the signal, unique within the run
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    id: Option<String>,
}

#[derive(Debug, Serialize)]
struct SignaledView {
    run_id: String,
    #[serde(rename = "type")]
    signal_type: String,
    existing: bool,
    kept: bool,
}

impl Signal {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = SignalRunRequest {
            run_id: self.run.clone(),
            r#type: self.signal_type.clone(),
            payload: json_argument::read_optional(self.payload.as_deref())?,
            scope: self.scope.unwrap_or_default(),
            signal_id: self.id.unwrap_or_default(),
            ..SignalRunRequest::default()
        };
        let response = session.client()?.signal_run(request).await?;
        let view = SignaledView {
            run_id: self.run,
            signal_type: self.signal_type,
            existing: response.existing,
            kept: response.kept,
        };
        session.output.value(&view, SignaledView::text)
    }
}

impl SignaledView {
    fn text(&self) -> String {
        let Self {
            run_id,
            signal_type,
            existing,
            kept,
        } = self;
        match (existing, kept) {
            (true, _) => {
                format!("signal {signal_type} delivered to {run_id} (was delivered before)")
            }
            (false, true) => {
                format!("signal {signal_type} kept by {run_id}: no step waits for it yet")
            }
            (false, false) => format!("signal {signal_type} delivered to {run_id}"),
        }
    }
}
