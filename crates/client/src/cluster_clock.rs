//! The cluster's time, as far as this client needs it: for the times in its request ids.
//!
//! The cluster rejects a request whose id was made too long ago by the cluster's time (design rule 9). If this machine's
//! clock is far behind, even a new id is. The rejection tells the time of the cluster.

use bytes::Bytes;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tonic::Status;
use tonic_types::StatusExt;
use uuid::{NoContext, Timestamp, Uuid};

/// The key of the cluster's time in the details of a rejection, in milliseconds since the Unix epoch.
const CLUSTER_MS: &str = "cluster_ms";

/// How much the cluster's time is ahead of this machine's clock.
#[derive(Debug, Default)]
pub(crate) struct ClusterClock {
    /// In milliseconds; 0 until this machine's clock has turned out to be wrong.
    ahead_ms: AtomicI64,
}

impl ClusterClock {
    /// Learns the cluster's time from a rejection that tells it.
    pub(crate) fn learn(&self, status: &Status) {
        let info = status.get_details_error_info();
        let cluster_ms = info.and_then(|info| info.metadata.get(CLUSTER_MS)?.parse::<i64>().ok());
        if let Some(cluster_ms) = cluster_ms {
            let ahead_ms = cluster_ms.saturating_sub(machine_ms());
            self.ahead_ms.store(ahead_ms, Ordering::Relaxed);
        }
    }

    /// A new request id with the cluster's time.
    pub(crate) fn new_request_id(&self) -> Bytes {
        let id = match self.ahead_ms.load(Ordering::Relaxed) {
            0 => Uuid::now_v7(),
            ahead_ms => {
                let time_ms = machine_ms().saturating_add(ahead_ms);
                let time = Duration::from_millis(u64::try_from(time_ms).unwrap_or_default());
                let (seconds, nanos) = (time.as_secs(), time.subsec_nanos());
                Uuid::new_v7(Timestamp::from_unix(NoContext, seconds, nanos))
            }
        };
        Bytes::copy_from_slice(id.as_bytes())
    }
}

/// This machine's clock, in milliseconds since the Unix epoch.
fn machine_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use tonic::Code;
    use tonic_types::ErrorDetails;

    /// The time in an id, in milliseconds.
    fn time_ms(id: &Bytes) -> i64 {
        let id = Uuid::from_slice(id).expect("16 bytes");
        let (seconds, nanos) = id.get_timestamp().expect("it has a time").to_unix();
        i64::try_from(seconds * 1_000 + u64::from(nanos) / 1_000_000).expect("this century")
    }

    #[test]
    fn ids_have_the_time_of_this_machine_until_it_turns_out_to_be_wrong() {
        const HOUR_MS: i64 = 3_600_000;
        let clock = ClusterClock::default();
        assert!((time_ms(&clock.new_request_id()) - machine_ms()).abs() < HOUR_MS / 2);
        let cluster_ms = machine_ms() + HOUR_MS;
        let metadata = HashMap::from([(CLUSTER_MS.to_owned(), cluster_ms.to_string())]);
        let details = ErrorDetails::with_error_info("request_too_old", "flotilla", metadata);
        let code = Code::FailedPrecondition;
        clock.learn(&Status::with_error_details(code, "expected …", details));
        let id = clock.new_request_id();
        assert!((time_ms(&id) - cluster_ms).abs() < HOUR_MS / 2);
        assert_ne!(id, clock.new_request_id());
    }
}
