//! Telling of the steps that this node has driven to their end.
//!
//! Every node applies every entry; it is the leader that proposed an entry that tells of the steps that were left in
//! it. When it dies between the two, nobody does.

use super::step;
use super::tracer::Tracer;
use crate::context::Context;
use flotilla_engine::Effect;
use flotilla_engine::view;
use flotilla_replica::{AppliedBatch, Notice, Subscription};
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Tells of steps that are left from the subscription on. Ends with `context.shutdown`.
pub(crate) fn start(
    context: Arc<Context>,
    tracer: Arc<Tracer>,
    mut subscription: Subscription,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        loop {
            let notice = tokio::select! {
                notice = subscription.next() => notice,
                () = context.shutdown.cancelled() => None,
            };
            match notice {
                Some(Notice::Applied(batch)) if batch.node == context.node => {
                    tell(&context, &tracer, &batch);
                }
                Some(Notice::Applied(_)) => {}
                Some(Notice::Lost) => {
                    tracing::debug!("some steps are not traced: more were left than could be told");
                }
                None => return,
            }
        }
    })
}

/// Tells of the steps that were left in one entry.
fn tell(context: &Context, tracer: &Tracer, batch: &AppliedBatch) {
    for effect in &batch.effects {
        let Effect::RunChanged {
            namespace, run_id, ..
        } = effect
        else {
            continue;
        };
        let left = context.gateway.read_here(|reader| {
            view::steps_left(reader, namespace, run_id, batch.index..=batch.index)
        });
        match left {
            Ok(visits) => {
                let spans = visits.into_iter().filter_map(|visit| {
                    let placed = tracer.place(&visit.key, visit.trace.as_ref())?;
                    Some(step::span(visit, placed))
                });
                spans.for_each(|span| tracer.export(span));
            }
            Err(refusal) => tracing::debug!(%refusal, run_id = %run_id, "a step is not traced"),
        }
    }
}
