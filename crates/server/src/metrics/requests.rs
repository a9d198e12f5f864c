//! Counts gRPC requests by method and by the status with which the response began.

use super::histogram::{Histogram, Reading};
use flotilla_api::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::FileDescriptorSet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tonic::Code;

/// All gRPC status codes, by number.
const CODES: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "out_of_range",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
];
/// All methods that the node does not have, so that callers cannot create series.
const OTHER: &str = "other";

/// Counts gRPC requests. The methods are known from the start, so counting needs no lock, and
/// callers cannot make the page longer.
#[derive(Debug)]
pub(crate) struct Requests {
    methods: BTreeMap<String, Arc<Method>>,
    other: Arc<Method>,
    in_flight: AtomicU64,
}

#[derive(Debug, Default)]
struct Method {
    in_flight: AtomicU64,
    by_code: [AtomicU64; CODES.len()],
    time: Histogram,
}

/// A request in flight. If it is dropped without a response, its caller has gone.
pub(crate) struct InFlight {
    requests: Arc<Requests>,
    method: Arc<Method>,
    since: Instant,
    code: Code,
}

/// The counts of one method: requests by code, without zeros, and their durations.
pub(super) struct MethodCounts<'a> {
    pub(super) method: &'a str,
    pub(super) by_code: Vec<(&'static str, u64)>,
    pub(super) time: Reading,
}

impl Requests {
    /// Zero counts for all methods of the node's services.
    pub(crate) fn new() -> Self {
        let sets = [
            FILE_DESCRIPTOR_SET,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
        ];
        let paths = sets.into_iter().flat_map(paths);
        Self {
            methods: paths.map(|path| (path, Arc::default())).collect(),
            other: Arc::default(),
            in_flight: AtomicU64::new(0),
        }
    }

    /// Begins a request; `path` is that of its URI.
    pub(crate) fn begin(self: &Arc<Self>, path: &str) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        let method = self.methods.get(path).unwrap_or(&self.other).clone();
        method.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight {
            requests: self.clone(),
            method,
            since: Instant::now(),
            code: Code::Cancelled,
        }
    }

    /// The number of requests in flight.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// The methods that have requests in flight, with their number.
    pub(crate) fn in_flight_by_method(&self) -> Vec<(&str, u64)> {
        let named = self.methods.iter();
        let named = named.map(|(path, method)| (path.trim_start_matches('/'), method));
        let all = named.chain([(OTHER, &self.other)]);
        all.map(|(name, method)| (name, method.in_flight.load(Ordering::Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// The counts of the methods that were called.
    pub(super) fn counted(&self) -> Vec<MethodCounts<'_>> {
        let named = self.methods.iter();
        let named = named.map(|(path, method)| (path.trim_start_matches('/'), method));
        let all = named.chain([(OTHER, &self.other)]);
        all.map(|(name, method)| method.counted(name))
            .filter(|counted| !counted.by_code.is_empty())
            .collect()
    }
}

impl Method {
    fn counted<'a>(&self, method: &'a str) -> MethodCounts<'a> {
        let counts = self
            .by_code
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        let by_code = CODES.into_iter().zip(counts);
        MethodCounts {
            method,
            by_code: by_code.filter(|(_, count)| *count > 0).collect(),
            time: self.time.read(),
        }
    }
}

impl InFlight {
    /// Records that the response begins with this status.
    pub(crate) fn record_response(mut self, code: Code) {
        self.code = code;
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.requests.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.method.in_flight.fetch_sub(1, Ordering::Relaxed);
        let code = usize::try_from(i32::from(self.code)).unwrap_or_default();
        if let Some(count) = self.method.by_code.get(code) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.method.time.record(self.since.elapsed());
    }
}

/// The paths of all methods in an encoded descriptor set.
fn paths(set: &[u8]) -> Vec<String> {
    let set = FileDescriptorSet::decode(set).expect("the set was encoded when this was built");
    let mut paths = Vec::new();
    for file in &set.file {
        for service in &file.service {
            for method in &service.method {
                let (package, service) = (file.package(), service.name());
                paths.push(format!("/{package}.{service}/{}", method.name()));
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "/flotilla.v1.WorkflowService/StartRun";

    #[test]
    fn requests_are_counted_by_method_and_code_and_strangers_together() {
        let requests = Arc::new(Requests::new());
        requests.begin(START).record_response(Code::Ok);
        requests.begin(START).record_response(Code::NotFound);
        requests.begin("/a").record_response(Code::Unimplemented);
        let open = requests.begin("/b");
        assert_eq!(requests.in_flight(), 1);
        assert_eq!(requests.in_flight_by_method(), [(OTHER, 1)]);
        drop(open);
        assert_eq!(requests.in_flight(), 0);
        let found: Vec<_> = requests
            .counted()
            .into_iter()
            .map(|counted| {
                (
                    counted.method.to_owned(),
                    counted.by_code,
                    counted.time.count(),
                )
            })
            .collect();
        let start = (START[1..].to_owned(), vec![("ok", 1), ("not_found", 1)], 2);
        let others = vec![("cancelled", 1), ("unimplemented", 1)];
        assert_eq!(found, [start, (OTHER.to_owned(), others, 2)]);
    }

    #[test]
    fn the_codes_stand_at_their_numbers() {
        for (name, code) in [("ok", Code::Ok), ("unauthenticated", Code::Unauthenticated)] {
            let number = usize::try_from(i32::from(code)).unwrap();
            assert_eq!(CODES[number], name);
        }
    }
}
