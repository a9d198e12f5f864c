//! The sample ratio of traces.

use opentelemetry::trace::{SpanKind, TraceId};
use opentelemetry_sdk::trace::{Sampler, SamplingDecision, ShouldSample};
use serde::Deserialize;

/// The share of all traces that is kept, from 0 to 1. Trace ids decide which ones, so that all
/// processes keep the same.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct SampleRatio(f64);

/// Why a number is not a [`SampleRatio`].
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("expected a ratio from 0 to 1, but it is {0}")]
pub struct SampleRatioInvalid(f64);

impl SampleRatio {
    /// Keeps all traces.
    pub const ALL: Self = Self(1.0);

    /// Whether a trace is kept.
    #[must_use]
    pub fn keeps(self, trace_id: TraceId) -> bool {
        let sampler = Sampler::TraceIdRatioBased(self.0);
        let sampled = sampler.should_sample(None, trace_id, "", &SpanKind::Internal, &[], &[]);
        sampled.decision == SamplingDecision::RecordAndSample
    }
}

// Never NaN.
impl Eq for SampleRatio {}

impl Default for SampleRatio {
    fn default() -> Self {
        Self::ALL
    }
}

impl TryFrom<f64> for SampleRatio {
    type Error = SampleRatioInvalid;

    fn try_from(part: f64) -> Result<Self, SampleRatioInvalid> {
        if (0.0..=1.0).contains(&part) {
            Ok(Self(part))
        } else {
            Err(SampleRatioInvalid(part))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derived;

    #[test]
    fn a_ratio_is_from_0_to_1() {
        for part in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(SampleRatio::try_from(part).is_err(), "{part}");
        }
    }

    #[test]
    fn about_that_part_of_the_traces_is_kept() {
        let kept = |part: f64| {
            let ratio = SampleRatio::try_from(part).expect("a part");
            let traces = (0..1000_u32).map(|number| derived::trace_id(&number.to_be_bytes()));
            traces.filter(|trace| ratio.keeps(*trace)).count()
        };
        assert_eq!((kept(0.0), kept(1.0)), (0, 1000));
        let quarter = kept(0.25);
        assert!((200..300).contains(&quarter), "{quarter}");
    }
}
