//! Schedules (W40).

use crate::world::World;

const HOUR_MS: u64 = 3_600_000;

/// Runs that wait forever, so that only time drives the world.
fn waiting(schedule: &str) -> String {
    format!(
        "kind: Workflow\nname: sweep\nversion: \"1\"\nschedule: {schedule}\nstart:\n  \
         waitForSignal: {{type: go, timeoutMs: 1, onTimeout: flo.Failed}}\n  \
         transitions: {{success: flo.Completed}}\n"
    )
}

#[test]
fn an_hour_of_a_schedule_fires_each_of_its_minutes_once() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&waiting("{cron: \"*/5 * * * *\", max_concurrent: 100}"));
    world.run_until("2026-03-05T10:00:30Z");
    let expected: Vec<String> = (1..=12)
        .map(|five| format!("{:02}:{:02}:00", 9 + five / 12, five * 5 % 60))
        .collect();
    assert_eq!(world.firings(), expected);
}

#[test]
fn an_interval_is_a_grid_from_the_create() {
    let mut world = World::new("2026-03-05T09:00:00.250Z");
    world.create(&waiting("{interval: 600000, max_concurrent: 100}"));
    world.run_until("2026-03-05T10:00:00.250Z");
    assert_eq!(
        world.firings(),
        [
            "09:10:00.250",
            "09:20:00.250",
            "09:30:00.250",
            "09:40:00.250",
            "09:50:00.250",
            "10:00:00.250"
        ]
    );
}

#[test]
fn leaders_that_change_and_repeat_each_other_fire_once() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&waiting("{cron: \"* * * * *\", max_concurrent: 100}"));
    // Each leader also repeats what the previous one has sent, and is away for some seconds.
    for leader in 0..40 {
        world.send_again();
        world.stand_still(leader % 8 * 1_000);
        world.run_for(90_000);
    }
    let firings = world.firings_ms();
    let first = firings[0];
    let minutes: Vec<u64> = (0..60).map(|minute| first + minute * 60_000).collect();
    assert_eq!(firings[..60], minutes);
}

#[test]
fn a_long_absence_misses_firings_but_not_the_one_that_is_just_past() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&waiting("{cron: \"*/5 * * * *\", max_concurrent: 100}"));
    world.run_for(5 * 60_000);
    world.stand_still(20 * 60_000 - 21_000);
    // 09:25:09, nine seconds after the last of four.
    world.run_for(6 * 60_000);
    assert_eq!(world.firings(), ["09:05:00", "09:25:00", "09:30:00"]);
    world.stand_still(4 * 60_000 - 9_000 + 11_000);
    // 09:35:11: too late.
    world.run_for(6 * 60_000);
    assert_eq!(world.firings()[3..], ["09:40:00"]);
}

#[test]
fn a_catch_up_window_makes_up_what_was_missed_within_it() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    let schedule = "{cron: \"*/5 * * * *\", max_concurrent: 100, catchup_window_ms: 660000}";
    world.create(&waiting(schedule));
    world.stand_still(HOUR_MS);
    world.run_for(1);
    assert_eq!(world.firings(), ["09:50:00", "09:55:00", "10:00:00"]);
}

#[test]
fn what_a_disabled_workflow_missed_is_made_up_within_the_window_only() {
    for (window_ms, expected) in [
        (0, ["10:05:00", "10:10:00"].as_slice()),
        (
            660_000,
            &["09:50:00", "09:55:00", "10:00:00", "10:05:00", "10:10:00"],
        ),
    ] {
        let mut world = World::new("2026-03-05T09:00:30Z");
        world.create(&waiting(&format!(
            "{{cron: \"*/5 * * * *\", max_concurrent: 100, catchup_window_ms: {window_ms}}}"
        )));
        world.enable(false);
        world.run_for(HOUR_MS);
        world.enable(true);
        world.run_for(10 * 60_000);
        assert_eq!(world.firings(), expected);
    }
}

#[test]
fn making_up_is_bounded() {
    let mut world = World::new("2026-03-05T09:00:00Z");
    world.create(&waiting(
        "{interval: 10, max_concurrent: 1000000, catchup_window_ms: 3600000}",
    ));
    world.stand_still(HOUR_MS);
    world.run_for(1);
    let count = world.firings_ms().len();
    assert!((500..=1_001).contains(&count), "{count} firings");
}

#[test]
fn local_time_decides_where_clocks_change() {
    // Berlin, 29 March 2026: 02:00 becomes 03:00 at 01:00 UTC; 25 October: 03:00 becomes 02:00.
    for (begins, expected) in [
        ("2026-03-28T12:00:00Z", ["01:00:00", "00:30:00"]),
        ("2026-10-24T12:00:00Z", ["00:30:00", "01:30:00"]),
    ] {
        let mut world = World::new(begins);
        world.create(&waiting(
            "{cron: \"30 2 * * *\", timezone: Europe/Berlin, max_concurrent: 9}",
        ));
        world.run_for(48 * HOUR_MS);
        assert_eq!(world.firings(), expected);
    }
}

#[test]
fn a_paused_schedule_waits_for_the_first_enable() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&waiting("{cron: \"*/30 * * * *\", paused: true}"));
    world.run_for(HOUR_MS);
    assert!(world.firings().is_empty());
    world.enable(true);
    world.run_for(HOUR_MS);
    assert_eq!(world.firings(), ["10:30:00", "11:00:00"]);
}

#[test]
fn a_new_revision_takes_over_from_its_create_on() {
    let mut world = World::new("2026-03-05T09:00:30Z");
    world.create(&waiting("{cron: \"*/10 * * * *\", max_concurrent: 100}"));
    world.run_until("2026-03-05T09:30:00Z");
    world.create(&waiting("{cron: \"5-59/10 * * * *\", max_concurrent: 100}"));
    world.run_until("2026-03-05T10:00:00Z");
    assert_eq!(
        world.firings(),
        [
            "09:10:00", "09:20:00", "09:30:00", "09:35:00", "09:45:00", "09:55:00"
        ]
    );
}
