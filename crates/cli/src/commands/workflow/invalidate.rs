//! `flo workflow invalidate`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::InvalidateCacheRequest;
use serde::Serialize;

/// Drop the cached plan results that list an event
///
/// Every plan that lists the event in `invalidate_on` drops its entire cache.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flo workflow invalidate payment.refunded
  flo workflow invalidate payment.refunded --workflow payment-processing")]
pub(crate) struct Invalidate {
    /// Name of the invalidation event
    event: String,

    /// Only plans of this workflow
    #[arg(long, default_value = "", hide_default_value = true)]
    workflow: String,
}

#[derive(Debug, Serialize)]
struct InvalidatedView {
    event: String,
    plan_count: u64,
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
            plan_count: response.plan_count,
        };
        session.output.value(&view, |view| match view.plan_count {
            0 => format!("no plan names {}", view.event),
            1 => "the cache of 1 plan dropped".to_owned(),
            count => format!("the caches of {count} plans dropped"),
        })
    }
}
