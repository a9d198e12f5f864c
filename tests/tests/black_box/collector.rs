//! A collector: receives spans over OTLP, and keeps them.

use crate::wire;
use flotilla_tests::{TIMEOUT, wait_until};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Runtime;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// A collector on this machine, which runs until it is dropped.
pub(crate) struct Collector {
    endpoint: String,
    received: Received,
    _runtime: Runtime,
}

/// A span as received; ids in hexadecimal digits, empty for a missing one.
#[derive(Clone, Debug)]
pub(crate) struct Collected {
    /// `service.name` and `service.instance.id` of the sender.
    pub(crate) sender: (String, String),
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) kind: SpanKind,
    pub(crate) name: String,
    pub(crate) took_ns: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    /// The names of its events.
    pub(crate) events: Vec<String>,
    pub(crate) is_error: bool,
}

#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Collected>>>);

impl Collector {
    /// Starts to listen.
    pub(crate) fn start() -> Self {
        let runtime = wire::runtime();
        let received = Received::default();
        let incoming = {
            let _entered = runtime.enter();
            TcpIncoming::bind(([127, 0, 0, 1], 0).into()).expect("a free port")
        };
        let address = incoming.local_addr().expect("a bound socket");
        let service = TraceServiceServer::new(received.clone());
        let server = tonic::transport::Server::builder().add_service(service);
        runtime.spawn(server.serve_with_incoming(incoming));
        Self {
            endpoint: format!("http://{address}"),
            received,
            _runtime: runtime,
        }
    }

    /// Its endpoint.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Waits until one span for each of the names has arrived.
    pub(crate) fn await_spans<const N: usize>(&self, names: [&str; N]) -> [Collected; N] {
        wait_until("the spans", TIMEOUT, || {
            let spans = self.spans();
            let find = |name: &str| spans.iter().find(|span| span.name == name).cloned();
            let found: Option<Vec<Collected>> = names.iter().map(|name| find(name)).collect();
            found
                .and_then(|found| found.try_into().ok())
                .ok_or_else(|| format!("{spans:#?}"))
        })
    }

    /// All spans so far.
    pub(crate) fn spans(&self) -> Vec<Collected> {
        let spans = self.received.0.lock();
        spans.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let mut spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for from in request.into_inner().resource_spans {
            let resource = texts(&from.resource.unwrap_or_default().attributes);
            let text = |name: &str| resource.get(name).cloned().unwrap_or_default();
            let sender = (text("service.name"), text("service.instance.id"));
            let sent = from.scope_spans.into_iter().flat_map(|scope| scope.spans);
            spans.extend(sent.map(|span| Collected {
                sender: sender.clone(),
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                kind: span.kind(),
                took_ns: span.end_time_unix_nano - span.start_time_unix_nano,
                attributes: texts(&span.attributes),
                events: span.events.into_iter().map(|event| event.name).collect(),
                is_error: span.status.is_some_and(|status| status.code == 2),
                name: span.name,
            }));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Option<AnyValue>| match value.as_ref().and_then(|any| any.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pairs = attributes.iter();
    pairs
        .map(|pair| (pair.key.clone(), text(&pair.value)))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
