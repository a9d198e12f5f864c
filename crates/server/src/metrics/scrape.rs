//! Writes the metrics page from the counters and the current values.

use super::catalogue::*;
use super::counters::Metrics;
use super::page::{Number, Page};
use super::process::Process;
use super::state::State;
use crate::access::is_open_beyond_loopback;
use crate::context::Context;
use crate::limits::METRICS_PAGE_REUSE_MAX;
use crate::oidc::IssuerFigures;
use crate::readiness;
use bytes::Bytes;
use flotilla_replica::{DiskPressure, Gauges, StoreFigures};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A field of a store's figures that a metric exposes.
type Figure = fn(&StoreFigures) -> Number;

/// The last page, and how many have been begun.
///
/// Pages are written one after the other, because each reads tables. Callers that arrive meanwhile share the next one.
/// For a moment, later callers get the same page, which limits the cost of many callers.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    begun_count: AtomicU64,
    last: Arc<Mutex<WrittenPage>>,
}

#[derive(Debug, Default)]
struct WrittenPage {
    /// The first page has number 1.
    number: u64,
    /// When it was begun.
    begun: Option<Instant>,
    /// Shared by its callers.
    text: Bytes,
}

impl Pages {
    /// A page that is begun after this call, or a moment before it; `None` if the thread that wrote it failed.
    async fn next(&self, write: impl FnOnce() -> String + Send + 'static) -> Option<Bytes> {
        let begun_before = self.begun_count.load(Ordering::Acquire);
        // Held until the page is written, even if the caller is gone.
        let mut last = self.last.clone().lock_owned().await;
        let is_new = |begun: Instant| begun.elapsed() < METRICS_PAGE_REUSE_MAX;
        if last.number > begun_before || last.begun.is_some_and(is_new) {
            return Some(last.text.clone());
        }
        let number = self.begun_count.fetch_add(1, Ordering::AcqRel) + 1;
        let begun = Some(Instant::now());
        // It asks the disk and reads tables.
        let written = tokio::task::spawn_blocking(move || {
            let text = Bytes::from(write());
            *last = WrittenPage {
                number,
                begun,
                text: text.clone(),
            };
            text
        });
        written.await.ok()
    }
}

/// The current page. `None` if the thread that wrote it failed.
pub(crate) async fn scrape(context: Arc<Context>) -> Option<Bytes> {
    let writing = context.clone();
    context.metrics.pages.next(move || write(&writing)).await
}

fn write(context: &Context) -> String {
    let mut page = Page::default();
    let metrics = &*context.metrics;
    let gauges = context.node_gateway.home().replica().gauges();
    node(&mut page, context);
    raft(&mut page, &gauges);
    raft_counters(&mut page, context);
    commands(&mut page, context, &gauges);
    work(&mut page, context);
    wasm(&mut page, metrics);
    stores(&mut page, &gauges);
    requests(&mut page, metrics);
    memory(&mut page, context, &gauges);
    access(&mut page, context);
    machine(&mut page, metrics, &gauges);
    page.into_text()
}

fn node(page: &mut Page, context: &Context) {
    let node_id = context.node.0.to_string();
    let version = env!("CARGO_PKG_VERSION");
    page.many(&NODE_INFO, [([node_id.as_str(), version], 1_u64.into())]);
    page.one(&READY, readiness::check(context).is_ok());
    let expiry = context.tls.as_ref().map(|tls| tls.expiry_seconds());
    page.maybe(&TLS_CERTIFICATE_EXPIRY, expiry);
}

fn raft(page: &mut Page, gauges: &Gauges) {
    page.one(&RAFT_TERM, gauges.term);
    page.one(&RAFT_IS_LEADER, gauges.is_leading);
    page.one(&RAFT_LEADER_ID, gauges.leader.map_or(0, |leader| leader.0));
    let (voters, learners) = (gauges.voters_count, gauges.learners_count);
    let members = [(["voter"], voters.into()), (["learner"], learners.into())];
    page.many(&RAFT_MEMBERS, members);
    page.one(&RAFT_LAST_LOG_INDEX, gauges.last_log_index);
    page.one(&RAFT_COMMITTED_INDEX, gauges.committed_index);
    page.one(&RAFT_APPLIED_INDEX, gauges.applied_index);
    page.one(&RAFT_SNAPSHOT_INDEX, gauges.snapshot_index);
    page.one(&RAFT_PURGED_INDEX, gauges.purged_index);
    let (last, committed) = (gauges.last_log_index, gauges.committed_index);
    page.one(&RAFT_COMMIT_LAG, last.saturating_sub(committed));
    let applied = gauges.applied_index;
    page.one(&RAFT_APPLY_LAG, committed.saturating_sub(applied));
    let followers: Vec<(String, u64)> = gauges
        .followers
        .iter()
        .map(|follower| (follower.node_id.0.to_string(), follower.matched_index))
        .collect();
    let lags = followers
        .iter()
        .map(|(peer, matched)| ([peer.as_str()], last.saturating_sub(*matched).into()));
    page.many(&RAFT_FOLLOWER_LAG, lags);
    page.one(&RAFT_LOG_BYTES, gauges.log_bytes);
    page.one(&RAFT_LOG_SYNC_AGE, gauges.log_sync_age.as_secs_f64());
    page.one(&STATE_DIVERGED, gauges.has_digest_conflict);
}

fn raft_counters(page: &mut Page, context: &Context) {
    let metrics = &context.metrics;
    let counters = context.node_gateway.home().replica().counters();
    page.one(&RAFT_ELECTIONS, metrics.elections.load(Ordering::Relaxed));
    let mismatch = context.node_gateway.home().replica().timing_mismatch();
    page.one(&RAFT_TIMING_DIFFERS, mismatch.is_some());
    let changes = metrics.leader_changes.load(Ordering::Relaxed);
    page.one(&RAFT_LEADER_CHANGES, changes);
    let (made, installed) = (counters.snapshots_made, counters.snapshots_installed);
    let snapshots = [
        (["created"], made.into()),
        (["installed"], installed.into()),
        (["refused"], counters.snapshots_refused.into()),
    ];
    page.many(&RAFT_SNAPSHOTS, snapshots);
    page.maybe(&BACKUP_COMPLETED, metrics.backup_completed_seconds());
    page.histograms(&RAFT_LOG_FSYNC, [([], metrics.log_sync.read())]);
    page.one(&RAFT_LOG_WRITTEN, counters.log_bytes);
    page.one(&COMMANDS_FORWARDED, counters.commands_forwarded);
    page.one(&COMMANDS_SHED, counters.commands_refused);
    page.one(&COMMANDS_PROPOSED, counters.commands_proposed);
    page.one(&ENTRIES_PROPOSED, counters.entries_proposed);
    page.one(&ENTRIES_APPLIED, counters.entries_applied);
}

fn commands(page: &mut Page, context: &Context, gauges: &Gauges) {
    let metrics = &context.metrics;
    let (intake, progress) = (gauges.intake_waiting, gauges.progress_waiting);
    let waiting = [(["intake"], intake.into()), (["progress"], progress.into())];
    page.many(&COMMANDS_QUEUED, waiting);
    page.one(&COMMANDS_QUEUED_BYTES, gauges.waiting_bytes);
    page.histograms(&ENTRY_APPLY, [([], metrics.entry_apply.read())]);
    let apply_max = metrics.entry_apply_micros_max.load(Ordering::Relaxed);
    page.one(
        &ENTRY_APPLY_MAX,
        Duration::from_micros(apply_max).as_secs_f64(),
    );
    let written = metrics.entry_written_bytes.load(Ordering::Relaxed);
    page.one(&ENTRY_WRITTEN, written);
    let written_max = metrics.entry_written_bytes_max.load(Ordering::Relaxed);
    page.one(&ENTRY_WRITTEN_MAX, written_max);
    let commands = metrics.commands();
    page.many(
        &COMMANDS,
        commands.map(|(labels, count)| (labels, count.into())),
    );
    let rejections = metrics.rejections();
    page.many(
        &REJECTIONS,
        rejections.map(|(code, count)| ([code], count.into())),
    );
    let refusals = metrics.quota_refusals();
    page.many(
        &QUOTA_REFUSALS,
        refusals.map(|(dimension, count)| ([dimension], count.into())),
    );
    let overdue = metrics.timers_overdue(context.node_gateway.home().replica().now_ms());
    page.one(&TIMERS_OVERDUE, overdue.as_secs_f64());
    page.histograms(&TIMER_DELAY, [([], metrics.timer_delay.read())]);
}

/// The metrics from the state; no samples while the node must not read it.
fn work(page: &mut Page, context: &Context) {
    let state = context.node_gateway.home().read_here(State::read).ok();
    let cluster = state.as_ref().map(|state| &state.cluster);
    page.maybe(&PANICS, cluster.map(|cluster| cluster.panics_count));
    page.maybe(&RUNS, cluster.map(|cluster| cluster.run_count));
    page.maybe(
        &ACTION_RUNS,
        cluster.map(|cluster| cluster.action_runs_count),
    );
    page.maybe(&REQUEST_IDS, cluster.map(|cluster| cluster.requests.count));
    let settings = state.as_ref().map(|state| state.settings);
    page.maybe(
        &REQUEST_IDS_MAX,
        settings.map(|settings| settings.requests_max),
    );
    let state = state.unwrap_or_default();
    for (metric, tasks) in [
        (&TASKS_READY, &state.ready),
        (&TASKS_LEASED, &state.leased),
        (&TASKS_UNSERVED, &state.unserved),
    ] {
        page.many(
            metric,
            tasks
                .samples()
                .map(|(labels, count)| (labels, count.into())),
        );
    }
    for (metric, counts) in [
        (&WORKERS, &state.workers),
        (&QUARANTINED, &state.quarantined),
    ] {
        page.many(
            metric,
            counts
                .iter()
                .map(|(name, count)| ([*name], (*count).into())),
        );
    }
}

fn wasm(page: &mut Page, metrics: &Metrics) {
    let calls = &metrics.wasm;
    let by_result = calls.by_result();
    page.many(
        &WASM_CALLS,
        by_result.map(|(result, count)| ([result], count.into())),
    );
    page.histograms(&WASM_CALL, [([], calls.time.read())]);
    page.one(&WASM_RUNNING, calls.running());
    page.one(&WASM_LOG_DROPPED, calls.log_lines_dropped());
}

fn stores(page: &mut Page, gauges: &Gauges) {
    let stores = [("log", &gauges.log_store), ("state", &gauges.state_store)];
    let figures: [(&Metric, Figure); 7] = [
        (&ROCKSDB_FILES, |store| store.files_bytes.into()),
        (&ROCKSDB_BUFFERS, |store| store.buffers_bytes.into()),
        (&ROCKSDB_CACHE, |store| store.cache_bytes.into()),
        (&ROCKSDB_PENDING, |store| {
            store.compaction_pending_bytes.into()
        }),
        (&ROCKSDB_COMPACTIONS, |store| {
            store.compactions_running.into()
        }),
        (&ROCKSDB_ROWS, |store| store.rows.into()),
        (&ROCKSDB_STALLED, |store| store.is_stalled.into()),
    ];
    for (metric, figure) in figures {
        let known = stores.iter();
        let known = known.filter_map(|(name, store)| Some((*name, store.as_ref()?)));
        page.many(metric, known.map(|(name, store)| ([name], figure(store))));
    }
}

fn requests(page: &mut Page, metrics: &Metrics) {
    let counted = metrics.requests.counted();
    let by_code = counted.iter().flat_map(|counted| {
        let codes = counted.by_code.iter();
        codes.map(|(code, count)| ([counted.method, *code], (*count).into()))
    });
    page.many(&GRPC_REQUESTS, by_code);
    let times = counted.iter();
    let times = times.map(|counted| ([counted.method], counted.time.clone()));
    page.histograms(&GRPC_REQUEST, times);
    page.one(&GRPC_IN_FLIGHT, metrics.requests.in_flight());
    let watch_reads = metrics.watch_reads.load(Ordering::Relaxed);
    page.one(&WATCH_READS, watch_reads);
}

fn memory(page: &mut Page, context: &Context, gauges: &Gauges) {
    page.one(&MEMORY_MAX, context.memory.bytes_max);
    let code_bytes = context.modules.code_bytes();
    let owners = context.memory.by_owner(gauges, code_bytes);
    let reserved = owners.iter().map(|one| ([one.owner], one.bytes.into()));
    page.many(&MEMORY_RESERVED, reserved);
    let max = owners.iter().map(|one| ([one.owner], one.bytes_max.into()));
    page.many(&MEMORY_RESERVED_MAX, max);
    let refused = context.memory.refused_by_owner();
    let refused = refused.map(|(owner, count)| ([owner], count.into()));
    page.many(&MEMORY_REFUSED, refused);
}

fn access(page: &mut Page, context: &Context) {
    let is_open = is_open_beyond_loopback(context);
    page.one(&ACCESS_OPEN_BEYOND_LOOPBACK, u64::from(is_open));
    let issuers: Vec<IssuerFigures<'_>> = context.issuers.figures().collect();
    let tokens = issuers.iter().flat_map(|issuer| {
        let results = issuer.tokens.iter();
        results.map(|(result, count)| ([issuer.name, *result], (*count).into()))
    });
    page.many(&OIDC_TOKENS, tokens);
    let fetches = issuers.iter().flat_map(|issuer| {
        let results = issuer.fetches.iter();
        results.map(|(result, count)| ([issuer.name, *result], (*count).into()))
    });
    page.many(&OIDC_KEY_FETCHES, fetches);
    let ages = issuers.iter().filter_map(|issuer| {
        let age = issuer.keys_age?;
        Some(([issuer.name], age.as_secs_f64().into()))
    });
    page.many(&OIDC_KEYS_AGE, ages);
}

fn machine(page: &mut Page, metrics: &Metrics, gauges: &Gauges) {
    page.maybe(&DISK_FREE, gauges.disk.map(|disk| disk.free_bytes));
    page.maybe(&DISK_SIZE, gauges.disk.map(|disk| disk.bytes));
    let disk_pressure: u64 = match gauges.disk_pressure {
        DiskPressure::Normal => 0,
        DiskPressure::Low => 1,
        DiskPressure::Critical => 2,
    };
    page.one(&DISK_PRESSURE, disk_pressure);
    page.one(&ENGINE_VERSION_AGREED, u64::from(gauges.engine_version));
    let process = Process::now();
    let cpu = process.cpu.map(|cpu| cpu.as_secs_f64());
    page.maybe(&PROCESS_CPU, cpu);
    page.maybe(&PROCESS_RESIDENT, process.resident_bytes);
    page.maybe(&PROCESS_FILES, process.files_open);
    page.maybe(&PROCESS_FILES_MAX, process.files_max);
    page.one(&PROCESS_START, metrics.started_seconds());
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::future::join_all;

    #[tokio::test]
    async fn callers_that_arrive_while_a_page_is_written_share_the_next_one() {
        let pages = Arc::new(Pages::default());
        let (written, released) = std::sync::mpsc::sync_channel::<()>(1);
        let (begun, mut has_begun) = tokio::sync::oneshot::channel();
        let first = tokio::spawn({
            let pages = pages.clone();
            async move {
                let write = move || {
                    begun.send(()).expect("the test waits");
                    released.recv().expect("it is released");
                    "first".to_owned()
                };
                pages.next(write).await
            }
        });
        (&mut has_begun).await.expect("it is written");
        // The first page becomes too old for those who wait, so they need the next one.
        tokio::time::pause();
        tokio::time::advance(METRICS_PAGE_REUSE_MAX).await;
        let others = (0..10).map(|number| {
            let pages = pages.clone();
            tokio::spawn(async move { pages.next(move || number.to_string()).await })
        });
        let others = others.collect::<Vec<_>>();
        while Arc::strong_count(&pages) < 12 {
            tokio::task::yield_now().await;
        }
        tokio::task::yield_now().await;
        written.send(()).expect("it waits");
        let shared: Vec<_> = join_all(others).await;
        let shared: Vec<Bytes> = shared
            .into_iter()
            .map(|one| one.unwrap().unwrap())
            .collect();
        assert!(shared.iter().all(|one| *one == shared[0]), "{shared:?}");
        assert_eq!(first.await.unwrap(), Some(Bytes::from("first")));
        assert_eq!(pages.begun_count.load(Ordering::Acquire), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_serves_further_callers_for_a_moment() {
        let pages = Pages::default();
        let write = async |text: &'static str| pages.next(move || text.to_owned()).await;
        assert_eq!(write("first").await, Some(Bytes::from("first")));
        tokio::time::advance(METRICS_PAGE_REUSE_MAX / 2).await;
        assert_eq!(write("second").await, Some(Bytes::from("first")));
        tokio::time::advance(METRICS_PAGE_REUSE_MAX).await;
        assert_eq!(write("third").await, Some(Bytes::from("third")));
        assert_eq!(pages.begun_count.load(Ordering::Acquire), 2);
    }
}
