//! `flo bench timers`: timers that fall due at the same time.

use super::load::{LoadFlags, Measured, Piece, Work, stopped};
use super::measurement::{Bench, Look};
use super::report::Conditions;
use super::report_flags::ReportFlags;
use super::runs;
use super::setup::{CALLS_IN_FLIGHT, create_workflow};
use crate::code::Code;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::session::Session;
use crate::shutdown::Shutdown;
use crate::time;
use clap::Args;
use flotilla_client::Client;
use flotilla_client::v1::{GetRunRequest, Run, RunStatus, StartRunRequest};
use futures::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until};

const WORKFLOW: &str = "flo-bench-timers";
/// Timeouts are multiples of this. All timers fall due within one such interval.
const GRAIN: Duration = Duration::from_millis(250);
/// The maximum number of runs whose ends clients wait for.
const WATCHED_MAX: u64 = 1_000;
/// How often to check for waiting runs once the watched ones have ended.
const ASKED_EVERY: Duration = Duration::from_millis(100);

/// The index of the stage for ends as clients saw them.
const SEEN: usize = 0;
const STAGES: &[&str] = &["due to end, as clients saw it"];

/// Measure timers that fall due at the same time
///
/// Starts runs that wait for a signal that never comes, with timeouts such that all expire within a
/// quarter of a second. It measures the time from when a timer was due until the cluster had ended
/// its run, by the cluster's clock; and, for up to a thousand of the runs, until a client was
/// notified, by this machine's clock.
///
/// Leaves behind: a definition with a version for each timeout, and the runs for an hour.
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  flo bench timers --runs 50000 --endpoint 127.0.0.1:9000,127.0.0.1:9010"
)]
pub(crate) struct Timers {
    /// Number of runs
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    runs: u64,

    /// Seconds until the timers fall due, which must be enough to start all the runs [default: 5,
    /// plus one for each thousand runs]
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    due_in: Option<u32>,

    /// Number of concurrent starts
    #[arg(long, value_name = "C", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    clients: u16,

    /// Number of connections that the clients share
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    connections: u16,

    #[command(flatten)]
    report: ReportFlags,
}

impl Timers {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let flags = LoadFlags::of_count(self.runs, self.clients, self.connections);
        let bench = Bench::open(session, &flags, &self.report, STAGES)?;
        let starts = Arc::new(Starts {
            due: Instant::now() + self.due_in(),
            versions: Mutex::default(),
            started: Mutex::default(),
            watched_every: self.runs.div_ceil(WATCHED_MAX),
            watchers: Mutex::default(),
        });
        // Stored first, so that an invalid definition is reported before any run is started.
        starts.version(bench.client(), GRAIN).await?;
        let mut shutdown = Shutdown::new()?;
        let (opened, _) = bench.load(starts.clone()).await?;
        if let Some(error) = opened.error {
            return Err(error);
        }
        // A signal during the starts also ends the bench: not all runs have then been started.
        let (measured, looks) = tokio::select! {
            biased;
            () = shutdown.requested() => return Err(stopped("the timers were not due")),
            expired = expire(&bench, &starts) => expired?,
        };
        bench.conclude(
            measured,
            Conditions::new("timers", "runs", "due to end"),
            &looks,
        )
    }

    fn due_in(&self) -> Duration {
        let thousands = u32::try_from(self.runs / 1_000).unwrap_or(u32::MAX);
        Duration::from_secs(self.due_in.unwrap_or(5 + thousands).into())
    }
}

/// Waits until all timers have fired, and reads when each run ended.
async fn expire(bench: &Bench<'_>, starts: &Starts) -> Result<(Measured, [Look; 2]), Failure> {
    let progress = Progress::start("waiting until the timers are due".to_owned());
    sleep_until(starts.due.checked_sub(GRAIN).unwrap_or(starts.due)).await;
    let before = bench.look().await;
    let watchers = std::mem::take(&mut *locked(&starts.watchers));
    let seen = watchers.join_all().await;
    progress.say("waiting until all runs have ended".to_owned());
    let mut often = interval(ASKED_EVERY);
    while !runs::waiting(bench.client(), WORKFLOW, String::new())
        .await?
        .0
        .is_empty()
    {
        often.tick().await;
    }
    let after = bench.look().await;
    progress.say("reading when they ended".to_owned());
    let started = std::mem::take(&mut *locked(&starts.started));
    let reads = stream::iter(started).map(|run| ended(bench.client(), run));
    let reads = reads.buffer_unordered(CALLS_IN_FLIGHT);
    let ended: Vec<Ended> = reads.try_collect().await?;
    Ok((measured(&ended, seen), [before, after]))
}

/// The latencies and the rate of the ended runs.
fn measured(ended: &[Ended], seen: Vec<Result<Seen, Failure>>) -> Measured {
    let mut measured = Measured::nothing(STAGES);
    let first_due_ms = ended.iter().map(|run| run.due_ms).min().unwrap_or_default();
    let last_ms = ended
        .iter()
        .map(|run| run.ended_ms)
        .max()
        .unwrap_or_default();
    measured.elapsed = Duration::from_millis(last_ms.saturating_sub(first_due_ms));
    let mut due_ms = BTreeMap::new();
    for run in ended {
        if run.has_expired {
            let latency = Duration::from_millis(run.ended_ms.saturating_sub(run.due_ms));
            let since = Duration::from_millis(run.ended_ms.saturating_sub(first_due_ms));
            measured.add(latency, since);
        } else {
            let message = format!(
                "expected run {} to complete, but it ended otherwise",
                run.run_id
            );
            measured.add_error(Failure::new(Code::BenchOutputMismatch, message));
        }
        due_ms.insert(run.run_id.as_str(), run.due_ms);
    }
    for seen in seen {
        match seen {
            Ok(Seen { run_id, at_ms }) => {
                if let Some(due_ms) = due_ms.get(run_id.as_str()) {
                    measured.add_stage(SEEN, Duration::from_millis(at_ms.saturating_sub(*due_ms)));
                }
            }
            Err(error) => measured.add_error(error),
        }
    }
    measured
}

/// Starts runs that fall due together.
struct Starts {
    due: Instant,
    /// The stored versions of the definition, by timeout.
    versions: Mutex<BTreeMap<Duration, Arc<OnceCell<String>>>>,
    started: Mutex<Vec<Started>>,
    /// Every run whose number is a multiple of this is watched.
    watched_every: u64,
    watchers: Mutex<JoinSet<Result<Seen, Failure>>>,
}

struct Started {
    run_id: String,
    timeout: Duration,
}

/// A run whose end a client saw.
struct Seen {
    run_id: String,
    at_ms: u64,
}

/// An ended run. Times are in milliseconds since the Unix epoch, by the cluster's clock.
struct Ended {
    run_id: String,
    due_ms: u64,
    ended_ms: u64,
    has_expired: bool,
}

impl Work for Starts {
    type Prepared = ();

    async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
        Ok(())
    }

    async fn perform(&self, piece: &Piece, (): ()) -> Result<Instant, Failure> {
        let left = self.due.saturating_duration_since(Instant::now());
        let timeout = grains(left).ok_or_else(too_late)?;
        let request = StartRunRequest {
            workflow: WORKFLOW.to_owned(),
            version: self.version(&piece.client, timeout).await?,
            ..StartRunRequest::default()
        };
        let run_id = piece.client.start_run(request).await?.run_id;
        let started = Instant::now();
        if piece.number.is_multiple_of(self.watched_every) {
            let watching = watch(piece.client.clone(), run_id.clone());
            locked(&self.watchers).spawn(watching);
        }
        locked(&self.started).push(Started { run_id, timeout });
        Ok(started)
    }
}

impl Starts {
    /// The version of the definition with this timeout.
    async fn version(&self, client: &Client, timeout: Duration) -> Result<String, Failure> {
        let version = locked(&self.versions).entry(timeout).or_default().clone();
        let create = async || {
            let ms = timeout.as_millis();
            create_workflow(client, &source(ms)).await?;
            Ok::<_, Failure>(ms.to_string())
        };
        version.get_or_try_init(create).await.cloned()
    }
}

/// A definition whose runs end after this time.
fn source(timeout_ms: u128) -> String {
    format!(
        "kind: Workflow\nname: {WORKFLOW}\nversion: \"{timeout_ms}\"\nretention_ms: 3600000\nstart:\n  \
         waitForSignal: {{type: never, timeoutMs: {timeout_ms}, onTimeout: flo.Completed}}\n  \
         transitions: {{success: flo.Failed}}\n"
    )
}

/// The longest timeout that has expired by then.
fn grains(left: Duration) -> Option<Duration> {
    let grains = u32::try_from(left.as_millis() / GRAIN.as_millis()).ok()?;
    (grains > 0).then(|| GRAIN * grains)
}

fn too_late() -> Failure {
    let message = "expected all runs to be started before their timers are due, but time ran out";
    Failure::new(Code::WaitTimeout, message).with_hint("give them longer with --due-in")
}

/// Waits until a run has ended.
async fn watch(client: Client, run_id: String) -> Result<Seen, Failure> {
    runs::completed(&client, &run_id).await?;
    let at_ms = time::now_ms();
    Ok(Seen { run_id, at_ms })
}

/// Reads when a run ended.
async fn ended(client: &Client, started: Started) -> Result<Ended, Failure> {
    let request = GetRunRequest {
        run_id: started.run_id,
        ..GetRunRequest::default()
    };
    let run: Run = client.get_run(request).await?;
    let timeout_ms = crate::period::millis(started.timeout);
    Ok(Ended {
        due_ms: run.started_at_ms + timeout_ms,
        ended_ms: run.completed_at_ms.unwrap_or(u64::MAX),
        has_expired: run.status() == RunStatus::Completed,
        run_id: run.run_id,
    })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics midway while holding the locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_is_valid() {
        let parsed = flotilla_dsl::parse(&source(250));
        assert!(parsed.findings.is_empty(), "{:?}", parsed.findings);
    }

    #[test]
    fn a_timer_is_never_due_after_the_others() {
        let ms = Duration::from_millis;
        assert_eq!(grains(ms(249)), None);
        assert_eq!(grains(ms(250)), Some(ms(250)));
        assert_eq!(grains(ms(1_499)), Some(ms(1_250)));
    }

    #[test]
    fn delays_and_the_rate_count_from_when_timers_were_due() {
        let run = |due_ms, ended_ms| Ended {
            run_id: format!("run-{ended_ms}"),
            due_ms,
            ended_ms,
            has_expired: true,
        };
        let seen = Seen {
            run_id: "run-2000".to_owned(),
            at_ms: 2_030,
        };
        let measured = measured(&[run(1_000, 1_010), run(1_200, 2_000)], vec![Ok(seen)]);
        assert_eq!(measured.elapsed, Duration::from_secs(1));
        assert_eq!((measured.completed, measured.latencies.max()), (2, 800_255));
        assert_eq!(measured.stages[SEEN].1.min(), 829_952);
    }
}
