//! Cron expressions in time zones (W40). Three lines: the expression, the zone, a time in milliseconds.

use super::place::assert_sentence;
use crate::target::{Target, Verdict};
use flotilla_dsl::cron::Cron;

pub(super) const TARGET: Target = Target {
    name: "cron",
    summary: "cron in time zones: firings lie ahead and ascend, and none is seen from one side only",
    tokens: &[
        "*",
        "*/5",
        "0",
        "59",
        "23",
        "31",
        "12",
        "7",
        "1-5",
        "1,2",
        "0-59/7",
        "/",
        ",",
        "-",
        " ",
        "\n",
        "UTC",
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Africa/Monrovia",
        "Asia/Kathmandu",
        "Antarctica/Troll",
        "1774746000000",
        "1792890000000",
        "0 0 29 2 *",
    ],
    check,
};

/// The year 1973: until the year before, a zone was half a minute off from the others, and the firing that its only gap
/// swallowed comes at the first whole minute. In milliseconds.
const AFTER_MS_MIN: u64 = 94_694_400_000;
/// The year 4000: within every bound of the calendar's library. In milliseconds.
const AFTER_MS_MAX: u64 = 64_060_588_800_000;
/// How many firings are computed one after another.
const FIRINGS_COUNT: usize = 3;

fn check(input: &[u8]) -> Verdict {
    let Ok(text) = std::str::from_utf8(input) else {
        return Verdict::Refused;
    };
    let mut lines = text.splitn(3, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (expression, timezone, after_ms) = (line(), line(), line());
    let cron = match Cron::new(expression, timezone) {
        Ok(cron) => cron,
        Err(invalid) => {
            assert_sentence(&invalid.to_string());
            return Verdict::Refused;
        }
    };
    let after_ms: u64 = after_ms.trim().parse().unwrap_or(0);
    let mut after_ms = AFTER_MS_MIN.max(after_ms % AFTER_MS_MAX);
    for _ in 0..FIRINGS_COUNT {
        after_ms = check_next(&cron, after_ms);
    }
    Verdict::Accepted
}

/// Checks the first firing after a time, and returns it.
fn check_next(cron: &Cron, after_ms: u64) -> u64 {
    let firing = cron.next_firing(after_ms);
    let firing_ms = firing.expect("an expression that is accepted fires in every age");
    assert!(
        firing_ms > after_ms,
        "{firing_ms} does not lie after {after_ms}"
    );
    assert_eq!(firing_ms % 1_000, 0, "clocks show whole seconds");
    // A query in between returns the same firing: a new leader skips no firing.
    let between_ms = after_ms + (firing_ms - after_ms) / 2;
    for asked_ms in [between_ms, firing_ms - 1] {
        assert_eq!(
            cron.next_firing(asked_ms),
            Some(firing_ms),
            "the first firing after {after_ms}, asked for at {asked_ms}"
        );
    }
    firing_ms
}
