//! Honest clients, which write keys and are counted, and probes of the nodes.

use super::arena::Arena;
use flotilla_client::{Client, new_request_id, v1};
use std::net::SocketAddrV4;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How busy the honest clients are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoadKind {
    /// Many clients, each of which makes one call after the other: throughput counts.
    Busy,
    /// A few clients that pause between their calls: latency counts.
    Quiet,
}

impl LoadKind {
    fn clients(self) -> usize {
        match self {
            Self::Busy => 12,
            Self::Quiet => 4,
        }
    }

    fn pause(self) -> Duration {
        match self {
            Self::Busy => Duration::ZERO,
            Self::Quiet => Duration::from_millis(50),
        }
    }

    /// How long the clients are measured, if busy ones are measured for `window`. A few clients need longer to make enough
    /// calls for a 99th percentile.
    pub(super) fn window(self, window: Duration) -> Duration {
        match self {
            Self::Busy => window,
            Self::Quiet => window * 4,
        }
    }
}

/// How long a call of an honest client may take, with its retries.
const CALL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often each node is probed.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// How long a probe may take: the timeout of the manifests' probes.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// The period over which recovery is measured.
const RECOVERY_STEP: Duration = Duration::from_secs(1);
/// The throughput at which the clients count as recovered, in percent of that before the attack.
const RECOVERED: u64 = 70;

/// What the honest clients saw in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Calls that succeeded.
    pub calls: u64,
    /// Calls that failed in spite of retries.
    pub failed: u64,
    /// Probes that got no answer in time.
    pub probes_failed: u64,
    /// The time within which 99 of 100 of them succeeded, in microseconds.
    pub p99_us: u64,
    /// How long it was, in milliseconds.
    pub ms: u64,
}

impl Served {
    /// Successful calls in a second.
    #[must_use]
    pub fn per_second(&self) -> u64 {
        self.calls * 1_000 / self.ms.max(1)
    }
}

/// The counts since the start.
#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    failed: AtomicU64,
    probes_failed: AtomicU64,
    /// How long the calls of the current period took, in microseconds.
    latencies_us: Mutex<Vec<u64>>,
}

/// The honest clients.
pub(super) struct Load {
    counts: Arc<Counts>,
    stop: CancellationToken,
}

impl Load {
    /// Starts them.
    pub(super) fn start(arena: &Arena, kind: LoadKind) -> Self {
        let counts = Arc::new(Counts::default());
        let stop = CancellationToken::new();
        for number in 0..kind.clients() {
            let client = arena.client(number, CALL_TIMEOUT);
            let work = work(client, number, kind.pause(), Arc::clone(&counts));
            arena.runtime.spawn(until(stop.clone(), work));
        }
        for address in arena.probed() {
            let watch = watch(address, Arc::clone(&counts));
            arena.runtime.spawn(until(stop.clone(), watch));
        }
        Self { counts, stop }
    }

    /// What they see in this period.
    pub(super) fn measure(&self, arena: &Arena, period: Duration) -> Served {
        let (began, before) = (Instant::now(), self.counts.now());
        self.counts.latencies_us().clear();
        arena.pass(period);
        let after = self.counts.now();
        Served {
            calls: after.calls - before.calls,
            failed: after.failed - before.failed,
            probes_failed: after.probes_failed - before.probes_failed,
            p99_us: p99(&mut self.counts.latencies_us()),
            ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// How long they take to be nearly as fast as in the calm period; `None` if that takes longer than `limit`.
    pub(super) fn await_recovery(
        &self,
        arena: &Arena,
        calm: &Served,
        limit: Duration,
    ) -> Option<Duration> {
        let began = Instant::now();
        while began.elapsed() < limit {
            let step_began = began.elapsed();
            let now = self.measure(arena, RECOVERY_STEP);
            if now.per_second() * 100 >= calm.per_second() * RECOVERED {
                return Some(step_began);
            }
        }
        None
    }

    /// Ends them.
    pub(super) fn end(&self, arena: &Arena) {
        self.stop.cancel();
        // So that their calls end before the cluster does.
        arena.pass(PROBE_INTERVAL);
    }
}

impl Counts {
    fn now(&self) -> Served {
        Served {
            calls: self.calls.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            probes_failed: self.probes_failed.load(Ordering::Relaxed),
            p99_us: 0,
            ms: 0,
        }
    }

    fn latencies_us(&self) -> MutexGuard<'_, Vec<u64>> {
        self.latencies_us
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The value below which 99 of 100 are; 0 of none.
fn p99(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    let position = (values.len() * 99).div_ceil(100);
    values.get(position.saturating_sub(1)).copied().unwrap_or(0)
}

async fn until(stop: CancellationToken, work: impl Future<Output = ()>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Writes one key after the other.
async fn work(client: Client, number: usize, pause: Duration, counts: Arc<Counts>) {
    loop {
        let request = v1::SetKeyRequest {
            key: format!("honest-{number}"),
            value: b"\"x\"".to_vec().into(),
            request_id: new_request_id(),
            ..v1::SetKeyRequest::default()
        };
        let began = Instant::now();
        if client.set_key(request).await.is_ok() {
            let us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            counts.latencies_us().push(us);
            counts.calls.fetch_add(1, Ordering::Relaxed);
        } else {
            counts.failed.fetch_add(1, Ordering::Relaxed);
        }
        sleep(pause).await;
    }
}

/// Probes a node, as a supervisor does.
async fn watch(address: SocketAddrV4, counts: Arc<Counts>) {
    loop {
        sleep(PROBE_INTERVAL).await;
        let probed = timeout(PROBE_TIMEOUT, probe(address)).await;
        if !matches!(probed, Ok(Ok(true))) {
            counts.probes_failed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Whether the node says that it is alive.
async fn probe(address: SocketAddrV4) -> std::io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /livez HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer.starts_with("HTTP/1.1 200"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_99th_percentile_is_a_value_that_one_in_a_hundred_exceeds() {
        let mut values: Vec<u64> = (1..=200).rev().collect();
        assert_eq!(p99(&mut values), 198);
        assert_eq!(p99(&mut [7]), 7);
        assert_eq!(p99(&mut []), 0);
    }
}
