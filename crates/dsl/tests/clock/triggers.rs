//! Triggers (W41).

use crate::world::World;

const MINUTE_MS: u64 = 60_000;
/// Not a divisor of the batches' time: records come at any moment of it.
const PERIOD_MS: u64 = 7_000;

/// Runs that end immediately, so that only records and time drive the world.
fn triggered(trigger: &str) -> String {
    format!(
        "kind: Workflow\nname: follow\nversion: \"1\"\ntrigger: {trigger}\nstart:\n  \
         waitForSignal: {{type: go, timeoutMs: 1, onTimeout: flo.Failed}}\n  \
         transitions: {{success: flo.Completed}}\n"
    )
}

#[test]
fn an_hour_of_records_starts_one_run_for_each() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&triggered("{stream: orders, mode: exclusive}"));
    for record in 0..514 {
        world.append(&[record]);
        world.run_for(PERIOD_MS);
    }
    let expected: Vec<Vec<u64>> = (0..514).map(|record| vec![record]).collect();
    assert_eq!(world.batches(), expected);
}

#[test]
fn an_hour_of_batches_takes_each_record_once_and_none_waits_longer_than_it_may() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&triggered(
        "{stream: orders, mode: exclusive, batch_size: 5, batch_timeout_ms: 30000}",
    ));
    for record in 0..514 {
        world.append(&[record]);
        world.run_for(PERIOD_MS);
    }
    world.run_for(MINUTE_MS);
    // The fifth of a batch would come 28 s after its first: just in time.
    let records: Vec<u64> = (0..514).collect();
    let expected: Vec<Vec<u64>> = records.chunks(5).map(<[u64]>::to_vec).collect();
    assert_eq!(world.batches(), expected);
}

#[test]
fn leaders_that_change_and_repeat_each_other_start_each_run_once() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&triggered(
        "{stream: orders, mode: exclusive, batch_size: 3, batch_timeout_ms: 10000}",
    ));
    // Each leader also repeats what the previous one has sent, and is away for some seconds.
    for leader in 0..60 {
        world.send_again();
        let first = leader * 4;
        world.append(&[first, first + 1]);
        world.stand_still(leader % 8 * 1_000);
        world.append(&[first + 2, first + 3]);
        world.run_for(MINUTE_MS);
    }
    let mut started: Vec<u64> = world.batches().concat();
    assert!(world.batches().iter().all(|batch| batch.len() <= 3));
    started.sort_unstable();
    assert_eq!(started, (0..240).collect::<Vec<u64>>());
}
