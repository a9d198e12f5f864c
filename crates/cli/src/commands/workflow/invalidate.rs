//! `flo workflow invalidate`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::InvalidateCacheRequest;
use serde::Serialize;

/// Raise an event that drops the cached results of plans
///
/// The plans that name it in `invalidate_on` forget all that they have cached.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flo workflow invalidate payment.refunded
  flo workflow invalidate payment.refunded --workflow payment-processing")]
pub(crate) struct Invalidate {
    /// The event's name
    event: String,

    /// Only the plans of this workflow
    #[arg(long, default_value = "", hide_default_value = true)]
    workflow: String,
}

#[derive(Debug, Serialize)]
struct InvalidatedView {
    event: String,
    plans_count: u64,
}

impl Invalidate {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = InvalidateCacheRequest {
            event: self.event.clone(),
            workflow: self.workflow,
            ..InvalidateCacheRequest::default()
        };
        let response = session.client()?.invalidate_cache(request).await?;
        let view = InvalidatedView {
            event: self.event,
            plans_count: response.plans_count,
        };
        session.output.value(&view, |view| match view.plans_count {
            0 => format!("no plan names {}", view.event),
            1 => "the cache of 1 plan dropped".to_owned(),
            count => format!("the caches of {count} plans dropped"),
        })
    }
}
