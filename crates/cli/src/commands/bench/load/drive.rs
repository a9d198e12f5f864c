//! Running a load, from its warm-up to its last response.

use super::connections::Connections;
use super::flags::{LoadFlags, Until};
use super::meter::{Measured, Meter};
use super::schedule::Schedule;
use super::work::{Piece, Work};
use crate::code::Code;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::shutdown::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use tokio_util::sync::CancellationToken;

/// A load to run.
pub(in super::super) struct Load<'a> {
    /// The flags of the load.
    pub(in super::super) flags: &'a LoadFlags,
    /// The connections that it uses.
    pub(in super::super) connections: &'a Connections,
    /// Where the work records its stages.
    pub(in super::super) meter: Arc<Meter>,
}

/// Runs the load and returns its measurement and what `look` saw before and after. A first signal
/// ends the load early; a second one also skips the wait for the last responses.
///
/// # Errors
/// If signals cannot be caught, or one arrives before anything was measured.
pub(in super::super) async fn drive<W: Work, L>(
    load: Load<'_>,
    work: Arc<W>,
    look: impl AsyncFn() -> L,
) -> Result<(Measured, [L; 2]), Failure> {
    let flags = load.flags;
    let schedule = || {
        let schedule = Schedule::begin(flags.pace(), CancellationToken::new());
        match flags.until() {
            // Run exactly the requested number of operations.
            Until::Done(count) if flags.warm_up().is_zero() => schedule.limited(count),
            Until::Done(_) | Until::Passed(_) => schedule,
        }
    };
    conduct(load, schedule, work, look).await
}

/// The same, with a schedule that is created when the load begins.
async fn conduct<W: Work, L>(
    load: Load<'_>,
    schedule: impl FnOnce() -> Schedule,
    work: Arc<W>,
    look: impl AsyncFn() -> L,
) -> Result<(Measured, [L; 2]), Failure> {
    let mut shutdown = Shutdown::new()?;
    let progress = Progress::start(load.flags.text());
    let begin = async || {
        let before = look().await;
        load.meter.begin(load.flags.until());
        before
    };
    let has_warm_up = !load.flags.warm_up().is_zero();
    let at_once = if has_warm_up {
        None
    } else {
        Some(begin().await)
    };
    let schedule = Arc::new(schedule());
    let mut clients = start(&load, &schedule, &work);
    let before = match at_once {
        Some(before) => before,
        None => {
            tokio::select! {
                () = sleep(load.flags.warm_up()) => {}
                () = shutdown.requested() => return Err(stopped("it was still warming up")),
            }
            begin().await
        }
    };
    let passed = async {
        match load.flags.until() {
            Until::Passed(length) => sleep(length).await,
            Until::Done(_) => std::future::pending().await,
        }
    };
    let is_stopped = tokio::select! {
        () = passed => false,
        () = load.meter.done() => false,
        () = all(&mut clients) => false,
        () = shutdown.requested() => true,
        () = tell(&progress, &load.meter) => false,
    };
    load.meter.end(schedule.not_started());
    schedule.stop();
    let after = look().await;
    progress.say("waiting for the last responses".to_owned());
    tokio::select! {
        () = all(&mut clients) => {}
        () = shutdown.requested() => {}
    }
    let mut measured = load.meter.take();
    if is_stopped && measured.is_nothing() {
        return Err(stopped("nothing had been measured"));
    }
    measured.is_stopped = is_stopped;
    Ok((measured, [before, after]))
}

/// The failure when a signal arrives before there is anything to report.
pub(in super::super) fn stopped(meanwhile: &str) -> Failure {
    let message = format!("expected to measure, but the bench was stopped while {meanwhile}");
    Failure::new(Code::BenchInterrupted, message)
}

/// Starts all clients.
fn start<W: Work>(load: &Load<'_>, schedule: &Arc<Schedule>, work: &Arc<W>) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for number in 0..load.flags.clients() {
        let piece = Piece {
            client: load.connections.of(number),
            number: 0,
            due: Instant::now(),
            meter: load.meter.clone(),
        };
        clients.spawn(repeat(piece, schedule.clone(), work.clone()));
    }
    clients
}

/// One client: works until there is nothing left to begin.
async fn repeat<W: Work>(mut piece: Piece, schedule: Arc<Schedule>, work: Arc<W>) {
    while !schedule.is_over() {
        let prepared = work.prepare(&piece).await;
        let Some((number, due)) = schedule.next().await else {
            return;
        };
        (piece.number, piece.due) = (number, due);
        let result = match prepared {
            Ok(prepared) => work.perform(&piece, prepared).await,
            Err(failure) => Err(failure),
        };
        piece.meter.note(due, result);
    }
}

async fn all(clients: &mut JoinSet<()>) {
    while let Some(ended) = clients.join_next().await {
        if let Err(error) = ended
            && error.is_panic()
        {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// Shows progress every second.
async fn tell(progress: &Progress, meter: &Meter) {
    let mut seconds = interval(Duration::from_secs(1));
    let mut before = 0;
    loop {
        seconds.tick().await;
        let completed = meter.completed();
        progress.say(format!("{} a second, {completed} done", completed - before));
        before = completed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::load::Pace;
    use clap::Parser;
    use tokio::sync::mpsc;

    const STALL: Duration = Duration::from_secs(2);

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        load: LoadFlags,
    }

    /// An operation that takes 10 ms, except those that begin in the fifth second, which end
    /// together at its end.
    struct Stalling {
        since: Instant,
    }

    impl Work for Stalling {
        type Prepared = ();

        async fn prepare(&self, _: &Piece) -> Result<(), Failure> {
            Ok(())
        }

        async fn perform(&self, _: &Piece, (): ()) -> Result<Instant, Failure> {
            let stall = Duration::from_secs(4);
            let now = self.since.elapsed();
            if now >= stall && now < stall + STALL {
                sleep(stall + STALL - now).await;
            } else {
                sleep(Duration::from_millis(10)).await;
            }
            Ok(Instant::now())
        }
    }

    fn flags(line: &str) -> LoadFlags {
        let words = ["flo"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).expect(line).load
    }

    async fn measure(flags: &LoadFlags, schedule: impl FnOnce() -> Schedule) -> Measured {
        let since = Instant::now();
        let load = Load {
            flags,
            connections: &Connections::nowhere(),
            meter: Arc::new(Meter::new(&[])),
        };
        let look = async || ();
        let measured = conduct(load, schedule, Arc::new(Stalling { since }), look).await;
        measured.expect("nothing fails").0
    }

    /// A schedule of 100 per second.
    fn planned() -> Schedule {
        let (sender, dues) = mpsc::channel(65_536);
        let first = Instant::now();
        tokio::spawn(async move {
            for number in 0.. {
                let due = first + Duration::from_millis(10) * number;
                tokio::time::sleep_until(due).await;
                if sender.send(due).await.is_err() {
                    return;
                }
            }
        });
        Schedule::planned(first, 100, dues, CancellationToken::new())
    }

    fn closed() -> Schedule {
        Schedule::begin(Pace::Closed, CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn every_client_works_until_the_end_and_the_warm_up_is_not_counted() {
        let flags = flags("--clients 2 --seconds 1 --warm-up 1");
        let measured = measure(&flags, closed).await;
        assert_eq!(measured.elapsed, Duration::from_secs(1));
        assert_eq!((measured.errors, measured.not_started), (0, 0));
        // Each operation takes 10 ms; timers have millisecond resolution.
        assert!((170..=200).contains(&measured.completed), "{measured:?}");
        assert_eq!(measured.per_second(), [measured.completed]);
    }

    #[tokio::test(start_paused = true)]
    async fn as_many_are_measured_as_were_asked_for() {
        let flags = flags("--clients 7 --count 40 --warm-up 0");
        let measured = measure(&flags, closed).await;
        assert_eq!((measured.completed, measured.latencies.len()), (40, 40));
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_loop_hardly_sees_a_stall() {
        let flags = flags("--clients 1 --seconds 10 --warm-up 0");
        let measured = measure(&flags, closed).await;
        assert!(measured.latencies.value_at_quantile(0.99) < 20_000);
    }

    #[tokio::test(start_paused = true)]
    async fn at_a_rate_a_stall_shows_in_the_latency_of_all_that_were_due_meanwhile() {
        let flags = flags("--clients 4 --rate 100 --seconds 10 --warm-up 0");
        let measured = measure(&flags, planned).await;
        let latencies = &measured.latencies;
        assert!(latencies.value_at_quantile(0.5) < 20_000, "{latencies:?}");
        // A fifth of them was due during the stall, although only 4 were in flight.
        let at = |quantile| Duration::from_micros(latencies.value_at_quantile(quantile));
        assert!(at(0.9) > STALL / 3, "{:?}", at(0.9));
        assert!(
            at(1.0) >= STALL - Duration::from_millis(20),
            "{:?}",
            at(1.0)
        );
        assert_eq!(measured.not_started, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_that_is_not_kept_is_reported() {
        let flags = flags("--clients 1 --rate 100 --seconds 5 --warm-up 0");
        let measured = measure(&flags, planned).await;
        // It ends within the stall.
        assert!((50..=110).contains(&measured.not_started), "{measured:?}");
    }
}
