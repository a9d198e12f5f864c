//! The counters that a node keeps since its start.

use super::histogram::Histogram;
use super::requests::Requests;
use super::scrape::Pages;
use super::wasm::WasmCalls;
use flotilla_engine::{
    Body, CommandKind, Entry, NodeId, QuotaDimension, QuotaRejection, Rejection, RejectionCode,
    Reply,
};
use flotilla_replica::{Leadership, Observer};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The due time when there is no timer.
const NEVER: u64 = u64::MAX;

/// The counters that a node keeps since its start.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Counts gRPC requests.
    pub(crate) requests: Arc<Requests>,
    /// Calls of WebAssembly actions.
    pub(crate) wasm: WasmCalls,
    /// The pages with these metrics.
    pub(super) pages: Pages,
    pub(super) started: SystemTime,
    /// The start on the monotonic clock.
    pub(super) began: Instant,
    pub(super) entry_apply: Histogram,
    /// The longest of these times, in microseconds.
    pub(super) entry_apply_micros_max: AtomicU64,
    /// Bytes that all entries wrote to the state.
    pub(super) entry_written_bytes: AtomicU64,
    /// Bytes that the largest entry wrote.
    pub(super) entry_written_bytes_max: AtomicU64,
    pub(super) log_sync: Histogram,
    pub(super) timer_delay: Histogram,
    pub(super) watch_reads: AtomicU64,
    pub(super) elections: AtomicU64,
    pub(super) leader_changes: AtomicU64,
    /// When a backup was last sent, in seconds since 1970; 0 before the first.
    backup_completed_seconds: AtomicU64,
    /// Commands by kind, accepted and rejected.
    commands: Vec<[AtomicU64; 2]>,
    /// Rejections by code.
    rejections: Vec<AtomicU64>,
    /// Rejections because of quotas, by dimension.
    quota_refusals: Vec<AtomicU64>,
    /// The last known leader; 0 before the first.
    leader_last: AtomicU64,
    /// When the earliest timer is due, as the driver last read it; [`NEVER`] without one.
    timer_due_ms: AtomicU64,
}

impl Metrics {
    /// Records that a whole backup was sent.
    pub(crate) fn backup_completed(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = now.map_or(0, |now| now.as_secs());
        self.backup_completed_seconds
            .store(seconds, Ordering::Relaxed);
    }

    /// When a whole backup was last sent, in seconds since 1970; `None` before the first one since the start.
    pub(super) fn backup_completed_seconds(&self) -> Option<u64> {
        let seconds = self.backup_completed_seconds.load(Ordering::Relaxed);
        (seconds > 0).then_some(seconds)
    }

    /// All counters at zero.
    pub(crate) fn new() -> Self {
        Self {
            requests: Arc::new(Requests::new()),
            wasm: WasmCalls::default(),
            pages: Pages::default(),
            started: SystemTime::now(),
            began: Instant::now(),
            entry_apply: Histogram::default(),
            entry_apply_micros_max: AtomicU64::new(0),
            entry_written_bytes: AtomicU64::new(0),
            entry_written_bytes_max: AtomicU64::new(0),
            log_sync: Histogram::default(),
            timer_delay: Histogram::default(),
            watch_reads: AtomicU64::new(0),
            elections: AtomicU64::new(0),
            leader_changes: AtomicU64::new(0),
            backup_completed_seconds: AtomicU64::new(0),
            commands: CommandKind::ALL
                .iter()
                .map(|_| Default::default())
                .collect(),
            rejections: RejectionCode::ALL
                .iter()
                .map(|_| AtomicU64::new(0))
                .collect(),
            quota_refusals: QuotaDimension::ALL
                .iter()
                .map(|_| AtomicU64::new(0))
                .collect(),
            leader_last: AtomicU64::new(0),
            timer_due_ms: AtomicU64::new(NEVER),
        }
    }

    /// Counts a read of a run for callers that watch it.
    pub(crate) fn count_watch_read(&self) {
        self.watch_reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a change of the known leadership.
    pub(crate) fn leadership_changed(&self, before: &Leadership, now: &Leadership) {
        if before.term > 0 {
            let terms = now.term.saturating_sub(before.term);
            self.elections.fetch_add(terms, Ordering::Relaxed);
        }
        let Some(leader) = &now.leader else { return };
        let NodeId(leader) = leader.node_id;
        let last = self.leader_last.swap(leader, Ordering::Relaxed);
        if last != 0 && last != leader {
            self.leader_changes.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The timer driver has read the state: the earliest timer is due at `due_ms`. `None` if there
    /// is no timer, or if this node no longer leads.
    pub(crate) fn timers_read(&self, due_ms: Option<u64>) {
        self.timer_due_ms
            .store(due_ms.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// How long the earliest timer has been due at `now_ms`.
    pub(super) fn timers_overdue(&self, now_ms: u64) -> Duration {
        let due_ms = self.timer_due_ms.load(Ordering::Relaxed);
        Duration::from_millis(now_ms.saturating_sub(due_ms))
    }

    /// Commands by kind and result.
    pub(super) fn commands(&self) -> impl Iterator<Item = ([&'static str; 2], u64)> {
        let kinds = CommandKind::ALL.iter().zip(&self.commands);
        kinds.flat_map(|(kind, counts)| {
            let results = ["accepted", "rejected"].into_iter().zip(counts);
            results.map(|(result, count)| ([kind.as_str(), result], count.load(Ordering::Relaxed)))
        })
    }

    /// Rejections by code.
    pub(super) fn rejections(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let codes = RejectionCode::ALL.iter().zip(&self.rejections);
        codes.map(|(code, count)| (code.as_str(), count.load(Ordering::Relaxed)))
    }

    /// Rejections because of quotas, by dimension.
    pub(super) fn quota_refusals(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let dimensions = QuotaDimension::ALL.iter().zip(&self.quota_refusals);
        dimensions.map(|(dimension, count)| (dimension.as_str(), count.load(Ordering::Relaxed)))
    }

    fn count_rejection(&self, rejection: &Rejection) {
        self.rejections[rejection.code() as usize].fetch_add(1, Ordering::Relaxed);
        if let Rejection::Quota(QuotaRejection::Exceeded(exceeded)) = rejection {
            let count = &self.quota_refusals[exceeded.dimension as usize];
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// When the node started, in seconds since the Unix epoch.
    pub(super) fn started_seconds(&self) -> f64 {
        let since = self.started.duration_since(UNIX_EPOCH);
        since.map_or(0.0, |since| since.as_secs_f64())
    }
}

impl Observer for Metrics {
    fn commands_applied(&self, entry: &Entry, replies: &[Result<Reply, Rejection>]) {
        for (envelope, reply) in entry.commands.iter().zip(replies) {
            let counts = &self.commands[envelope.command.body.kind() as usize];
            counts[usize::from(reply.is_err())].fetch_add(1, Ordering::Relaxed);
            match (reply, &envelope.command.body) {
                (Err(rejection), _) => self.count_rejection(rejection),
                (Ok(_), Body::FireTimer(fired)) => {
                    let delay_ms = entry.stamp.now_ms.saturating_sub(fired.timer.due_ms);
                    self.timer_delay.record(Duration::from_millis(delay_ms));
                }
                (Ok(_), _) => {}
            }
        }
    }

    fn entry_applied(&self, time: Duration, written_bytes: usize) {
        self.entry_apply.record(time);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.entry_apply_micros_max
            .fetch_max(micros, Ordering::Relaxed);
        let bytes = written_bytes as u64;
        self.entry_written_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.entry_written_bytes_max
            .fetch_max(bytes, Ordering::Relaxed);
    }

    fn log_synced(&self, time: Duration) {
        self.log_sync.record(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::Namespace;
    use flotilla_engine::{BeginTerm, CommandEnvelope, FireTimer, Stamp, reply};
    use flotilla_engine::{TimerKey, TimerKind};
    use flotilla_replica::Leader;

    fn metrics() -> Metrics {
        Metrics::new()
    }

    fn command(body: Body) -> CommandEnvelope {
        body.into_command(Namespace::default_namespace())
            .by_anyone()
    }

    fn knows(term: u64, leader: Option<u64>) -> Leadership {
        let leader = leader.map(|node_id| Leader {
            node_id: NodeId(node_id),
            client_address: String::new(),
            peer_address: String::new(),
        });
        Leadership {
            leader,
            term,
            ..Leadership::default()
        }
    }

    #[test]
    fn commands_are_counted_by_kind_and_result_and_timers_by_their_delay() {
        let metrics = metrics();
        let timer = TimerKey {
            kind: TimerKind::StepWake,
            due_ms: 1_000,
            subject: 1,
            detail: 0,
        };
        let entry = Entry {
            stamp: Stamp {
                now_ms: 1_250,
                seed: 0,
                node: NodeId(1),
            },
            offers: Vec::new(),
            commands: vec![
                command(Body::BeginTerm(BeginTerm { term: 1 })),
                command(Body::FireTimer(FireTimer { timer })),
            ],
        };
        let refused = Rejection::Internal(String::new());
        metrics.commands_applied(&entry, &[Err(refused), Ok(Reply::Done(reply::Done {}))]);
        let commands: Vec<_> = metrics.commands().filter(|(_, count)| *count > 0).collect();
        let expected = [
            (["fire_timer", "accepted"], 1),
            (["begin_term", "rejected"], 1),
        ];
        assert_eq!(commands, expected);
        let rejections: Vec<_> = metrics
            .rejections()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(rejections, [("internal", 1)]);
        assert_eq!(metrics.timer_delay.read().sum_micros, 250_000);
    }

    #[test]
    fn every_kind_and_code_has_its_own_count() {
        for (place, kind) in CommandKind::ALL.iter().enumerate() {
            assert_eq!(*kind as usize, place);
        }
        for (place, code) in RejectionCode::ALL.iter().enumerate() {
            assert_eq!(*code as usize, place);
        }
    }

    #[test]
    fn terms_and_leaders_are_counted_from_the_first_that_is_known() {
        let metrics = metrics();
        let known = [
            knows(0, None),
            knows(7, Some(1)),
            knows(8, None),
            knows(9, Some(1)),
            knows(10, Some(2)),
        ];
        for pair in known.windows(2) {
            metrics.leadership_changed(&pair[0], &pair[1]);
        }
        assert_eq!(metrics.elections.load(Ordering::Relaxed), 3);
        assert_eq!(metrics.leader_changes.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_timer_is_overdue_from_its_time_until_the_driver_has_seen_to_it() {
        let metrics = metrics();
        assert_eq!(metrics.timers_overdue(5_000), Duration::ZERO);
        metrics.timers_read(Some(3_000));
        assert_eq!(metrics.timers_overdue(2_000), Duration::ZERO);
        assert_eq!(metrics.timers_overdue(5_000), Duration::from_secs(2));
        metrics.timers_read(None);
        assert_eq!(metrics.timers_overdue(5_000), Duration::ZERO);
    }
}
