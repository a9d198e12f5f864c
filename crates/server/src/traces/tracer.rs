//! The node's tracer: sampling, ids and export of spans.

use super::context::{of_engine, own};
use crate::config::ServerConfig;
use flotilla_engine::TraceContext;
use flotilla_engine::view::VisitKey;
use flotilla_replica::Replica;
use flotilla_trace::{Emitter, Exporter, ExporterError, SampleRatio, Span, SpanContext, derived};
use std::sync::Arc;

/// Sends this node's spans to a collector.
pub(crate) struct Tracer {
    exporter: Exporter,
    ratio: SampleRatio,
    replica: Replica,
}

/// A step's place in a trace.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    /// The step's own span.
    pub(super) context: SpanContext,
    /// The call that started the run, in a caller's trace.
    pub(super) parent: Option<SpanContext>,
}

impl Tracer {
    /// Starts the tracer of a node that is configured to trace.
    ///
    /// # Errors
    /// If nothing can be sent to the endpoint.
    pub(crate) fn start(
        config: &ServerConfig,
        replica: &Replica,
    ) -> Result<Option<Arc<Self>>, ExporterError> {
        let Some(endpoint) = &config.otlp_endpoint else {
            return Ok(None);
        };
        let emitter = Emitter {
            service: "flotilla".to_owned(),
            instance: config.node_id.to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Ok(Some(Arc::new(Self {
            exporter: Exporter::start(endpoint, emitter)?,
            ratio: config.otlp_sample_ratio,
            replica: replica.clone(),
        })))
    }

    /// Exports a span, if its trace is sampled.
    pub(super) fn export(&self, span: Span) {
        self.exporter.export(span);
    }

    /// Sends what is left. Blocks for a moment.
    pub(crate) fn stop(&self) {
        self.exporter.stop();
    }

    /// The place of a step's span whose run recorded `trace`; `None` while the node knows no
    /// cluster, and for a trace that is not sampled.
    pub(super) fn place(&self, visit: &VisitKey, trace: Option<&TraceContext>) -> Option<Placed> {
        let name = name(self.replica.cluster_id()?, visit);
        let span_id = derived::span_id(&name);
        let placed = match trace {
            Some(trace) => {
                let parent = of_engine(trace);
                Placed {
                    context: own(parent.trace_id(), span_id, parent.is_sampled()),
                    parent: Some(parent),
                }
            }
            None => {
                let trace_id = derived::trace_id(&name);
                Placed {
                    context: own(trace_id, span_id, self.ratio.keeps(trace_id)),
                    parent: None,
                }
            }
        };
        placed.context.is_sampled().then_some(placed)
    }
}

/// A name that no other visit of a step has, in any cluster.
fn name(cluster_id: &str, visit: &VisitKey) -> Vec<u8> {
    let VisitKey {
        run,
        scope,
        step,
        entered_at_ms,
    } = visit;
    let step = u64::try_from(step.position()).unwrap_or(u64::MAX);
    let mut name = cluster_id.as_bytes().to_vec();
    for part in [run.0, scope.0, step, *entered_at_ms] {
        name.extend(part.to_be_bytes());
    }
    name
}
