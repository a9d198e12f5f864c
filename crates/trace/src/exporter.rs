//! Sending spans to a collector.

use crate::endpoint::Endpoint;
use crate::span::Span;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanProcessor};
use std::time::Duration;

/// How long a span waits for others at most.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Spans that wait for a collector; more are dropped.
const SPANS_WAITING_MAX: usize = 2048;
/// Spans that are sent at once.
const BATCH_SPANS_MAX: usize = 128;
/// How long one batch may take to be sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the last spans are waited for when whoever emits them stops.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends spans to a collector, in batches, from a thread of its own. Spans are dropped, never waited for, when the
/// collector does not keep up or is away; the log says so.
#[derive(Debug)]
pub struct Exporter {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

/// Who emits spans: what their resource says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitter {
    /// What kind of process, as `service.name`.
    pub service: String,
    /// Which of them, as `service.instance.id`.
    pub instance: String,
    /// The release, as `service.version`.
    pub version: String,
}

/// Spans cannot be sent.
#[derive(Debug, thiserror::Error)]
#[error("expected to send spans to {endpoint}, but {source}")]
pub struct ExporterError {
    endpoint: Endpoint,
    source: ExporterBuildError,
}

impl Exporter {
    /// Begins to send to `endpoint`; the connection is made with the first spans. To be called within a runtime.
    ///
    /// # Errors
    /// When nothing can be sent at all.
    pub fn start(endpoint: &Endpoint, emitter: Emitter) -> Result<Self, ExporterError> {
        let builder = SpanExporter::builder().with_tonic();
        let exporter = builder
            .with_endpoint(endpoint.to_string())
            .with_timeout(SEND_TIMEOUT)
            .build()
            .map_err(|source| ExporterError {
                endpoint: endpoint.clone(),
                source,
            })?;
        let scope = InstrumentationScope::builder("flotilla")
            .with_version(emitter.version.clone())
            .build();
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(SPANS_WAITING_MAX)
            .with_max_export_batch_size(BATCH_SPANS_MAX)
            .with_scheduled_delay(BATCH_DELAY)
            .build();
        let mut processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(config)
            .build();
        processor.set_resource(&emitter.resource());
        Ok(Self { processor, scope })
    }

    /// Sends a span, soon; a span of a trace that is not sampled is forgotten.
    pub fn export(&self, span: Span) {
        if span.context.is_sampled() {
            self.processor.on_end(span.into_data(self.scope.clone()));
        }
    }

    /// Sends what is left. Blocks for two seconds at most.
    pub fn stop(&self) {
        // Who stops twice, or whose collector is away, has nothing more to send.
        drop(self.processor.shutdown_with_timeout(STOP_TIMEOUT));
    }
}

impl Emitter {
    fn resource(self) -> Resource {
        Resource::builder_empty()
            .with_service_name(self.service)
            .with_attribute(KeyValue::new("service.instance.id", self.instance))
            .with_attribute(KeyValue::new("service.version", self.version))
            .build()
    }
}
