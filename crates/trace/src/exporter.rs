//! The exporter, which sends spans to a collector.

use crate::endpoint::Endpoint;
use crate::span::Span;
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanProcessor};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long a span waits for others at most.
const BATCH_DELAY: Duration = Duration::from_secs(1);
/// Spans that wait for a collector; further ones are dropped.
const SPANS_WAITING_MAX: usize = 2048;
/// Spans in one batch.
const BATCH_SPANS_MAX: usize = 128;
/// How long one batch may take to be sent.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a stopping exporter waits for the last spans.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends spans to a collector, in batches, from a separate thread. It drops spans rather than wait
/// if the collector is slow or unreachable, and logs that.
#[derive(Debug)]
pub struct Exporter {
    processor: BatchSpanProcessor,
    scope: InstrumentationScope,
}

/// The process that emits spans, as their resource describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emitter {
    /// The kind of process, as `service.name`.
    pub service: String,
    /// The instance, as `service.instance.id`.
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
    /// Begins to send to `endpoint`; it connects with the first spans. Must be called within a
    /// runtime.
    ///
    /// # Errors
    /// If nothing can be sent at all.
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
        let exporter = Telling {
            exporter,
            endpoint: endpoint.to_string(),
            lost_count: AtomicU64::new(0),
        };
        let mut processor = BatchSpanProcessor::builder(exporter)
            .with_batch_config(config)
            .build();
        processor.set_resource(&emitter.resource());
        Ok(Self { processor, scope })
    }

    /// Queues a span to be sent; discards a span of a trace that is not sampled.
    pub fn export(&self, span: Span) {
        if span.context.is_sampled() {
            self.processor.on_end(span.into_data(self.scope.clone()));
        }
    }

    /// Sends what is left. Blocks for two seconds at most.
    pub fn stop(&self) {
        // After a repeated stop, or without a reachable collector, there is nothing more to send.
        drop(self.processor.shutdown_with_timeout(STOP_TIMEOUT));
    }
}

/// An exporter that logs once when its collector becomes unreachable, and once when it is back.
#[derive(Debug)]
struct Telling {
    exporter: SpanExporter,
    endpoint: String,
    /// Spans lost since the collector became unreachable; 0 while it is reachable.
    lost_count: AtomicU64,
}

impl opentelemetry_sdk::trace::SpanExporter for Telling {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len() as u64;
        let endpoint = &self.endpoint;
        let sent = self.exporter.export(batch).await;
        match &sent {
            Ok(()) => match self.lost_count.swap(0, Ordering::Relaxed) {
                0 => {}
                lost => tracing::info!(endpoint, lost, "the collector accepts spans again"),
            },
            Err(error) => {
                if self.lost_count.fetch_add(count, Ordering::Relaxed) == 0 {
                    tracing::warn!(endpoint, %error, "the collector accepts no spans: they are \
                                                      lost until it does");
                }
            }
        }
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
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
