//! The health of executors (W31), in millionths and rounded down: the engine uses no floats.
//!
//! Each result weighs `decay` times as much as the one after it; results older than the window do not count. At most
//! `HEALTH_SAMPLES_MAX` results of an executor are kept, the newest ones; a larger `min_samples` counts as this
//! maximum.

use super::breaker::{BreakerDecision, decide};
use crate::definition::{Executor, Health};
use crate::limits::HEALTH_SAMPLES_MAX;
use crate::tables::{BreakerState, PlanExecutorRecord, Sample, Verdict};

/// One, in millionths.
const ONE: u64 = 1_000_000;

/// An executor's health at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Score {
    /// How often a business result came back, in millionths.
    pub(crate) api: u32,
    /// How often it was `success`, in millionths.
    pub(crate) business: u32,
    /// Both weighed together, less what the breaker takes off; in millionths.
    pub(crate) score: u32,
    /// Results in the window.
    pub(crate) samples_count: u32,
}

/// The health of `executor` at `now_ms`.
pub(crate) fn score(
    record: &PlanExecutorRecord,
    executor: &Executor,
    settings: &Health,
    now_ms: u64,
) -> Score {
    let samples: Vec<&Sample> = in_window(record, settings, now_ms).collect();
    let decay = u64::from(settings.decay_millionths);
    let api = rate(&samples, decay, |verdict| verdict != Verdict::Failure);
    let business = rate(&samples, decay, |verdict| verdict == Verdict::Success);
    let both = (7 * api + 3 * business) / 10;
    let score = penalize(both, &record.breaker, executor, now_ms);
    let small = |rate: u64| u32::try_from(rate).expect("a rate is at most a million");
    Score {
        api: small(api),
        business: small(business),
        score: small(score),
        samples_count: u32::try_from(samples.len()).expect("few samples are kept"),
    }
}

/// Notes a result at `now_ms`.
pub(super) fn note(
    record: &mut PlanExecutorRecord,
    settings: &Health,
    verdict: Verdict,
    now_ms: u64,
) {
    let samples = &mut record.samples;
    samples.retain(|sample| is_in(sample, settings, now_ms));
    let surplus = (samples.len() + 1).saturating_sub(HEALTH_SAMPLES_MAX as usize);
    samples.drain(..surplus);
    let at_ms = now_ms;
    samples.push(Sample { at_ms, verdict });
}

/// Results of a whole plan that must lie in the window before health counts.
pub(super) fn samples_min(settings: &Health) -> u32 {
    settings.min_samples.min(HEALTH_SAMPLES_MAX)
}

/// The results in the window, newest first.
fn in_window<'a>(
    record: &'a PlanExecutorRecord,
    settings: &'a Health,
    now_ms: u64,
) -> impl Iterator<Item = &'a Sample> {
    let samples = record.samples.iter().rev();
    samples.filter(move |sample| is_in(sample, settings, now_ms))
}

fn is_in(sample: &Sample, settings: &Health, now_ms: u64) -> bool {
    now_ms.saturating_sub(sample.at_ms) <= settings.window_ms
}

/// Σ decay^k · ok / Σ decay^k over results that are newest first; 1.0 if there are no results.
fn rate(samples: &[&Sample], decay: u64, is_ok: impl Fn(Verdict) -> bool) -> u64 {
    let mut weight = ONE;
    let (mut good, mut all) = (0_u64, 0);
    for sample in samples {
        all += weight;
        if is_ok(sample.verdict) {
            good += weight;
        }
        weight = weight * decay / ONE;
    }
    (good * ONE).checked_div(all).unwrap_or(ONE)
}

/// ×0.1 while the breaker is open, ×0.5 while it is half-open.
fn penalize(score: u64, breaker: &BreakerState, executor: &Executor, now_ms: u64) -> u64 {
    let Some(settings) = &executor.breaker else {
        return score;
    };
    match decide(breaker, settings, now_ms) {
        BreakerDecision::Free => score,
        BreakerDecision::Blocked { until_ms: Some(_) } => score / 10,
        BreakerDecision::Blocked { until_ms: None } | BreakerDecision::Probe => score / 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::{Breaker, ExecutorExtensions, Tracking};
    use crate::ids::{ActionName, ExecutorName};

    const SETTINGS: Health = Health {
        window_ms: 1_000,
        decay_millionths: 900_000,
        min_samples: 500,
    };

    fn executor() -> Executor {
        Executor {
            name: ExecutorName::new("stripe").expect("a name"),
            action: ActionName::new("charge").expect("a name"),
            priority: 100,
            retry: None,
            breaker: Some(Breaker {
                failure_threshold: 5,
                cooldown_ms: 100,
                half_open_max_calls: 1,
            }),
            rate_limit: None,
            tracking: Tracking::Sync,
            extensions: ExecutorExtensions::default(),
        }
    }

    fn after(verdicts: &[Verdict]) -> PlanExecutorRecord {
        let mut record = PlanExecutorRecord::default();
        for (at_ms, verdict) in (0..).zip(verdicts) {
            note(&mut record, &SETTINGS, *verdict, at_ms);
        }
        record
    }

    fn at(record: &PlanExecutorRecord, now_ms: u64) -> Score {
        score(record, &executor(), &SETTINGS, now_ms)
    }

    #[test]
    fn no_data_and_no_failure_score_one() {
        assert_eq!(at(&PlanExecutorRecord::default(), 5).score, 1_000_000);
        let healthy = at(&after(&[Verdict::Success; 40]), 40);
        assert_eq!((healthy.score, healthy.samples_count), (1_000_000, 40));
    }

    #[test]
    fn a_newer_result_weighs_more_and_an_answer_counts_for_one_of_both_rates() {
        // 1 / (1 + 0.9) and 0.9 / (1 + 0.9), rounded down.
        let failed_last = at(&after(&[Verdict::Success, Verdict::Failure]), 2);
        assert_eq!((failed_last.api, failed_last.business), (473_684, 473_684));
        let failed_first = at(&after(&[Verdict::Failure, Verdict::Success]), 2);
        assert_eq!(failed_first.score, 526_315);
        let answered = at(&after(&[Verdict::Answer]), 2);
        assert_eq!((answered.api, answered.business), (1_000_000, 0));
        assert_eq!(answered.score, 700_000);
    }

    #[test]
    fn results_age_with_the_window_and_only_the_newest_are_kept() {
        let failed = after(&[Verdict::Failure]);
        assert_eq!(at(&failed, 1_000).score, 0);
        assert_eq!(at(&failed, 1_001).score, 1_000_000);
        let many = after(&[Verdict::Success; 300]);
        assert_eq!(many.samples.len(), HEALTH_SAMPLES_MAX as usize);
        assert_eq!(many.samples[0].at_ms, 200);
        assert_eq!(samples_min(&SETTINGS), HEALTH_SAMPLES_MAX);
    }

    #[test]
    fn an_open_breaker_takes_nine_tenths_and_a_half_open_one_half() {
        let mut record = PlanExecutorRecord {
            breaker: BreakerState::Open { until_ms: 50 },
            ..PlanExecutorRecord::default()
        };
        assert_eq!(at(&record, 49).score, 100_000);
        assert_eq!(at(&record, 50).score, 500_000);
        record.breaker = BreakerState::HalfOpen { probes: Vec::new() };
        assert_eq!(at(&record, 60).score, 500_000);
    }
}
