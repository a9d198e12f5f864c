//! Ack deadlines: until when a consumer holds the records of a take (A31).
//!
//! A group counts its records in flight by ack deadline. Its timer therefore knows the next deadline without reading
//! any delivery, and reads deliveries only when a deadline has passed or a consumer is gone.

use super::{NumberedGroup, arm, partition_of};
use crate::tables::{DeliveredRecord, GroupRecord};
use crate::turn::Turn;

/// When a lease of `length_ms` ends, in milliseconds. Rounded up by less than a sixteenth, so that few distinct times
/// exist, however many records there are.
pub(super) fn end_of_lease(now_ms: u64, length_ms: u64) -> u64 {
    let mut step_ms: u64 = 1;
    while step_ms <= length_ms / 160 {
        step_ms *= 10;
    }
    let end_ms = now_ms.saturating_add(length_ms);
    end_ms.div_ceil(step_ms).saturating_mul(step_ms)
}

/// Counts records as in flight until `expires_at_ms`.
pub(super) fn begin(
    turn: &mut Turn<'_, '_>,
    target: &mut NumberedGroup,
    count: usize,
    expires_at_ms: u64,
) {
    let count = u32::try_from(count).expect("a delivery is bounded");
    *target.1.leases.entry(expires_at_ms).or_default() += count;
    arm(turn, target, expires_at_ms);
}

/// Removes a record from the count of its ack deadline.
pub(super) fn end(group: &mut GroupRecord, record: &DeliveredRecord) {
    let count = group.leases.get_mut(&record.expires_at_ms);
    let count = count.expect("each record in flight is counted");
    *count -= 1;
    if *count == 0 {
        group.leases.remove(&record.expires_at_ms);
    }
}

/// Removes a record from the counts of records in flight.
pub(super) fn land(group: &mut GroupRecord, record: &DeliveredRecord) {
    end(group, record);
    partition_of(group, record.partition).in_flight_count -= 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_lease_is_rounded_up_by_less_than_a_sixteenth() {
        assert_eq!(end_of_lease(1_000, 30_000), 31_000);
        assert_eq!(end_of_lease(1_001, 30_000), 32_000);
        assert_eq!(end_of_lease(7, 100), 107);
        assert_eq!(end_of_lease(7, 160), 170);
        assert_eq!(end_of_lease(7, 1_599), 1_610);
        assert_eq!(end_of_lease(0, 0), 0);
        assert_eq!(end_of_lease(u64::MAX, 1), u64::MAX);
        assert_eq!(end_of_lease(1, u64::MAX), u64::MAX);
        for length_ms in [1, 15, 16, 159, 160, 12_345, 86_400_000] {
            let late_ms = end_of_lease(987_654_321, length_ms) - 987_654_321 - length_ms;
            assert!(late_ms * 16 < length_ms.max(16), "{length_ms} by {late_ms}");
        }
    }
}
