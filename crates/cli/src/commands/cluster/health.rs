//! `flo cluster health`.

use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo cluster health
  flo cluster health --endpoint 127.0.0.1:9010 --timeout 3s

Exit codes: 0 if the node serves clients, 4 if it does not, 5 if no node answers.";

/// Check whether a node serves clients
///
/// Needs no token, so probes can use it. A node serves clients while it knows a leader and is not draining. With several
/// endpoints, this checks the node that answers.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Health {}

#[derive(Debug, Serialize)]
struct HealthView {
    serving: bool,
}

impl Health {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        if !session.client()?.is_serving().await? {
            let message = "expected the node to serve clients, but it does not";
            return Err(Failure::new(Code::NotServing, message)
                .with_hint("`/readyz` at the node's HTTP port says why"));
        }
        let view = HealthView { serving: true };
        session.output.value(&view, |_| "serving".to_owned())
    }
}
