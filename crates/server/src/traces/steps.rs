//! Exports the spans of steps that ended in entries of this node.
//!
//! Every node applies every entry; the leader that proposed an entry exports the steps that ended
//! in it. If it dies between the two, their spans are lost.

use super::step;
use super::tracer::Tracer;
use crate::context::Context;
use flotilla_engine::ids::{Namespace, RunId};
use flotilla_engine::store::Reader;
use flotilla_engine::{Effect, view};
use flotilla_replica::{AppliedBatch, Notice, Subscription};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinHandle;

/// Exports steps that end from the subscription on. Ends with `context.shutdown`.
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
                    tell(&context, &tracer, &batch).await;
                }
                Some(Notice::Applied(_)) => {}
                Some(Notice::Lost) => {
                    tracing::debug!("some steps are not traced: more ended than could be exported");
                }
                None => return,
            }
        }
    })
}

/// Exports the steps that ended in one entry.
async fn tell(context: &Context, tracer: &Tracer, batch: &AppliedBatch) {
    let changed = changed_runs(&batch.effects);
    if changed.is_empty() {
        return;
    }
    let entry = batch.index..=batch.index;
    let read = move |reader: &dyn Reader| {
        let mut left = Vec::new();
        for (namespace, run_id) in &changed {
            left.extend(view::steps_left(reader, namespace, run_id, entry.clone())?);
        }
        Ok(left)
    };
    // The entry is one of this node's only group.
    let gateway = context.node_gateway.home();
    match gateway.scan_here(read).await {
        Ok(visits) => {
            for visit in visits {
                if let Some(placed) = tracer.place(&visit.key, visit.trace.as_ref()) {
                    tracer.export(step::span(visit, placed));
                }
            }
        }
        Err(refusal) => tracing::debug!(%refusal, index = batch.index, "steps are not traced"),
    }
}

/// Each run that an entry has changed, once, however many of its commands did.
fn changed_runs(effects: &[Effect]) -> BTreeSet<(Namespace, RunId)> {
    let changed = effects.iter().filter_map(|effect| match effect {
        Effect::RunChanged {
            namespace, run_id, ..
        } => Some((namespace.clone(), run_id.clone())),
        _ => None,
    });
    changed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_several_commands_changed_is_reported_once() {
        let change = |run_id: &str| Effect::RunChanged {
            namespace: Namespace::default_namespace(),
            run_id: RunId::new(run_id).unwrap(),
            is_open: true,
        };
        let effects = [
            change("a"),
            Effect::ModulesChanged,
            change("b"),
            change("a"),
        ];
        let changed = changed_runs(&effects);
        let changed: Vec<&str> = changed.iter().map(|(_, run_id)| run_id.as_str()).collect();
        assert_eq!(changed, ["a", "b"]);
    }
}
