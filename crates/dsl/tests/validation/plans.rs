//! E104, E106, E402–E405 and the defaults of plans (W3).

use crate::{accept_block, check_block};
use expect_test::{Expect, expect};
use flotilla_engine::definition::{
    Backoff, BackoffKind, Breaker, Cache, CacheKeyPart, ErrorClasses, Fallback, FallbackCondition,
    Health, Plan, RateLimit, RetryDelays, RetryPolicy, Segment, Selection, Tracking,
};

fn plan(lines: &str) -> String {
    format!(
        "plans:\n  p:\n    executors:\n      - name: e\n        action: \"@actions/a\"\n{lines}"
    )
}

fn check_plan(lines: &str, expected: Expect) {
    check_block(&plan(lines), expected);
}

fn accept_plan(lines: &str) -> Plan {
    accept_block(&plan(lines)).plans.remove(0)
}

#[test]
fn e104_plans_without_executors() {
    check_block(
        r#"
        plans:
          a: {}
          b: {executors: []}
          c:
            executors:
        "#,
        expect![[r#"
            error[E104]: expected plans.a to have at least one executor, but the list is empty
             --> w.yaml:5:3
              |
            5 |   a: {}
              |   ^

            error[E104]: expected plans.b to have at least one executor, but the list is empty
             --> w.yaml:6:3
              |
            6 |   b: {executors: []}
              |   ^

            error[E104]: expected plans.c to have at least one executor, but the list is empty
             --> w.yaml:7:3
              |
            7 |   c:
              |   ^
        "#]],
    );
}

#[test]
fn e100_more_executors_than_a_plan_may_have() {
    let executors: Vec<String> = (0..65)
        .map(|number| format!("{{name: e{number}, action: \"@actions/a\"}}"))
        .collect();
    let plan = format!("plans:\n  p:\n    executors: [{}]\n", executors.join(", "));
    check_block(
        &plan,
        expect![[r#"
        error[E100]: expected at most 64 items in plans.p.executors, but it has 65
         --> w.yaml:6:16
          |
        6 |     executors: [{name: e0, action: "@actions/a"}, {name: e1, action: "@actions/a"}, {name: e2, action: "@actions/a"}, {n…
          |                ^
    "#]],
    );
}

#[test]
fn e106_a_duplicate_executor() {
    check_block(
        r#"
        plans:
          p:
            executors:
              - {name: e, action: "@actions/a"}
              - {name: e, action: "@actions/b"}
        "#,
        expect![[r#"
            error[E106]: duplicate executor "e" in its plan
             --> w.yaml:8:16
              |
            8 |       - {name: e, action: "@actions/b"}
              |                ^
        "#]],
    );
}

#[test]
fn e100_an_executor_without_name_or_target() {
    check_block(
        r#"
        plans:
          p:
            executors:
              - priority: 5
        "#,
        expect![[r#"
            error[E100]: expected plans.p.executors[0] to have `name`, but it is missing
             --> w.yaml:7:9
              |
            7 |       - priority: 5
              |         ^

            error[E100]: expected plans.p.executors[0] to have `action`, but it is missing
             --> w.yaml:7:9
              |
            7 |       - priority: 5
              |         ^
        "#]],
    );
}

#[test]
fn e402_breakers_out_of_bounds() {
    check_plan(
        "        breaker: {failure_threshold: 0, half_open_max_calls: 0, cooldown_ms: -1}\n",
        expect![[r#"
            error[E402]: expected plans.p.executors[0].breaker.failure_threshold to be from 1 to 2147483647, but it is the number 0
             --> w.yaml:9:38
              |
            9 |         breaker: {failure_threshold: 0, half_open_max_calls: 0, cooldown_ms: -1}
              |                                      ^

            error[E402]: expected plans.p.executors[0].breaker.half_open_max_calls to be from 1 to 2147483647, but it is the number 0
             --> w.yaml:9:62
              |
            9 |         breaker: {failure_threshold: 0, half_open_max_calls: 0, cooldown_ms: -1}
              |                                                              ^

            error[E402]: expected plans.p.executors[0].breaker.cooldown_ms to be from 0 to 316224000000, but it is the number -1
             --> w.yaml:9:78
              |
            9 |         breaker: {failure_threshold: 0, half_open_max_calls: 0, cooldown_ms: -1}
              |                                                                              ^^
        "#]],
    );
}

#[test]
fn e403_a_rate_limit_that_limits_nothing() {
    check_plan(
        "        rate_limit: {}\n",
        expect![[r#"
        warning[E403]: plans.p.executors[0].rate_limit limits nothing
         --> w.yaml:9:9
          |
        9 |         rate_limit: {}
          |         ^^^^^^^^^^
          = hint: add `max_per_second`, `max_per_minute` or `max_per_hour`
    "#]],
    );
}

#[test]
fn e524_a_timeout_of_sync_tracking() {
    check_plan(
        "        tracking: {mode: sync, timeout_ms: 1000}\n",
        expect![[r#"
            warning[E524]: plans.p.executors[0].tracking.timeout_ms has no effect with `mode: sync`
             --> w.yaml:9:32
              |
            9 |         tracking: {mode: sync, timeout_ms: 1000}
              |                                ^^^^^^^^^^
              = hint: leave it out, or set `mode: async`
        "#]],
    );
    check_plan(
        "        tracking: {timeout_ms: 1000}\n",
        expect![[r#"
        warning[E524]: plans.p.executors[0].tracking.timeout_ms has no effect with `mode: sync`
         --> w.yaml:9:20
          |
        9 |         tracking: {timeout_ms: 1000}
          |                    ^^^^^^^^^^
          = hint: leave it out, or set `mode: async`
    "#]],
    );
}

#[test]
fn e404_caches_without_time_or_key() {
    check_plan(
        "    cache: {ttl_ms: 0, key: \"\"}\n",
        expect![[r#"
            error[E404]: expected plans.p.cache to have a `key`, but it is missing or empty
             --> w.yaml:9:5
              |
            9 |     cache: {ttl_ms: 0, key: ""}
              |     ^^^^^

            error[E404]: expected plans.p.cache.ttl_ms to be from 1 to 316224000000, but it is the number 0
             --> w.yaml:9:21
              |
            9 |     cache: {ttl_ms: 0, key: ""}
              |                     ^
        "#]],
    );
    check_plan(
        "    cache: {ttl_ms: 1}\n",
        expect![[r#"
        error[E404]: expected plans.p.cache to have a `key`, but it is missing or empty
         --> w.yaml:9:5
          |
        9 |     cache: {ttl_ms: 1}
          |     ^^^^^
    "#]],
    );
}

#[test]
fn e405_health_out_of_bounds() {
    check_plan(
        "    health: {decay: 0, window_ms: 0, min_samples: 0}\n",
        expect![[r#"
            error[E405]: expected plans.p.health.decay to be above 0 and at most 1, with at most 6 decimals, but it is the number 0
             --> w.yaml:9:21
              |
            9 |     health: {decay: 0, window_ms: 0, min_samples: 0}
              |                     ^

            error[E405]: expected plans.p.health.window_ms to be from 1 to 316224000000, but it is the number 0
             --> w.yaml:9:35
              |
            9 |     health: {decay: 0, window_ms: 0, min_samples: 0}
              |                                   ^

            error[E405]: expected plans.p.health.min_samples to be from 1 to 2147483647, but it is the number 0
             --> w.yaml:9:51
              |
            9 |     health: {decay: 0, window_ms: 0, min_samples: 0}
              |                                                   ^
        "#]],
    );
    check_plan(
        "    health: {decay: 1.01}\n",
        expect![[r#"
        error[E405]: expected plans.p.health.decay to be above 0 and at most 1, with at most 6 decimals, but it is the number 1.01
         --> w.yaml:9:21
          |
        9 |     health: {decay: 1.01}
          |                     ^^^^
    "#]],
    );
    check_plan(
        "    health: {decay: -0.5}\n",
        expect![[r#"
        error[E405]: expected plans.p.health.decay to be above 0 and at most 1, with at most 6 decimals, but it is the number -0.5
         --> w.yaml:9:21
          |
        9 |     health: {decay: -0.5}
          |                     ^^^^
    "#]],
    );
}

#[test]
fn e405_a_health_weighted_plan_without_health() {
    check_plan(
        "    selection: health-weighted\n",
        expect![[r#"
        error[E405]: expected plans.p to have `health`, since its selection is `health-weighted`
         --> w.yaml:9:16
          |
        9 |     selection: health-weighted
          |                ^^^^^^^^^^^^^^^
          = hint: `health: {}` uses the defaults
    "#]],
    );
}

#[test]
fn e100_a_fallback_that_is_not_json() {
    check_plan(
        "    fallback: {value: declined}\n",
        expect![[r#"
        error[E100]: expected plans.p.fallback.value to be JSON text, but it is not: expected value
         --> w.yaml:9:23
          |
        9 |     fallback: {value: declined}
          |                       ^
    "#]],
    );
    check_plan(
        "    fallback: {condition: any}\n",
        expect![[r#"
        error[E100]: expected plans.p.fallback to have `value`, but it is missing
         --> w.yaml:9:5
          |
        9 |     fallback: {condition: any}
          |     ^^^^^^^^

        error[E100]: expected plans.p.fallback.condition to be one of `exhausted`, `any_error`, but it is the string "any"
         --> w.yaml:9:27
          |
        9 |     fallback: {condition: any}
          |                           ^^^
    "#]],
    );
}

#[test]
fn empty_blocks_have_the_defaults_of_w3() {
    let plan = accept_plan(
        "        breaker: {}\n        tracking: {mode: async}\n    health: {}\n    cache: {key: k}\n    fallback: {value: null}\n    errors: {}\n",
    );
    assert_eq!(plan.selection, Selection::StaticOrder);
    let executor = &plan.executors[0];
    assert_eq!(executor.priority, 100);
    let breaker = Breaker {
        failure_threshold: 5,
        cooldown_ms: 30_000,
        half_open_max_calls: 3,
    };
    assert_eq!(executor.breaker, Some(breaker));
    assert_eq!(
        executor.tracking,
        Tracking::Async {
            timeout_ms: Some(300_000)
        }
    );
    let health = Health {
        window_ms: 300_000,
        decay_millionths: 900_000,
        min_samples: 10,
    };
    assert_eq!(plan.health, Some(health));
    let cache = Cache {
        ttl_ms: 300_000,
        key: vec![CacheKeyPart::Literal("k".to_owned())],
        invalidate_on: Vec::new(),
    };
    assert_eq!(plan.cache, Some(cache));
    let fallback = Fallback {
        value: "null".to_owned(),
        condition: FallbackCondition::Exhausted,
    };
    assert_eq!(plan.fallback, Some(fallback));
    assert_eq!(plan.errors, Some(ErrorClasses::default()));
}

#[test]
fn a_plan_with_everything_reaches_the_definition() {
    let plan = accept_plan(
        "        priority: -5\n        rateLimit: {maxPerSecond: 100, max_per_hour: 7}\n        tracking: {mode: sync}\n    selection: round_robin\n    health: {decay: 0.85}\n    cache: {ttlMs: 5, key: \"c:{input.a[0].b}-{$.mapped.x}\", invalidateOn: [payment.refunded]}\n    fallback: {value: '{\"status\": \"declined\"}', condition: any_error}\n    errors: {retryable: [timeout], fatal: [fraud]}\n",
    );
    assert_eq!(plan.selection, Selection::RoundRobin);
    let executor = &plan.executors[0];
    assert_eq!((executor.priority, executor.tracking), (-5, Tracking::Sync));
    let limit = RateLimit {
        max_per_second: Some(100),
        max_per_minute: None,
        max_per_hour: Some(7),
    };
    assert_eq!(executor.rate_limit, Some(limit));
    assert_eq!(
        plan.health.map(|health| health.decay_millionths),
        Some(850_000)
    );
    let field = |name: &str| Segment::Field(name.to_owned());
    let key = [
        CacheKeyPart::Literal("c:".to_owned()),
        CacheKeyPart::Input(vec![field("a"), Segment::Index(0), field("b")]),
        CacheKeyPart::Literal("-".to_owned()),
        CacheKeyPart::Mapped(vec![field("x")]),
    ];
    assert_eq!(plan.cache.map(|cache| cache.key), Some(key.to_vec()));
    let fallback = Fallback {
        value: "{\"status\":\"declined\"}".to_owned(),
        condition: FallbackCondition::AnyError,
    };
    assert_eq!(plan.fallback, Some(fallback));
    assert_eq!(
        plan.errors.map(|errors| (
            errors.retryable.map_or(0, |codes| codes.len()),
            errors.fatal.len()
        )),
        Some((1, 1))
    );
}

#[test]
fn the_blocks_of_the_manuals_executor_reach_the_definition() {
    let plan = accept_plan(
        r#"
        retry: {max_attempts: 3, backoff: exponential, initial_delay_ms: 1000, max_delay_ms: 20000}
        breaker: {failure_threshold: 7, cooldown_ms: 31000, half_open_max_calls: 4}
        rate_limit: {max_per_second: 100, max_per_minute: 5000, max_per_hour: 50000}
        tracking: {mode: async, timeout_ms: 310000}
    health: {window_ms: 310000, decay: 0.8, min_samples: 11}
    cache: {ttl_ms: 3600000, key: "charge", invalidate_on: [payment.refunded, customer.deleted]}
"#,
    );
    let executor = &plan.executors[0];
    let backoff = Backoff {
        kind: BackoffKind::Exponential,
        initial_delay_ms: 1_000,
        max_delay_ms: 20_000,
        coefficient_percent: 200,
    };
    let retry = RetryPolicy {
        max_attempts: 3,
        delays: RetryDelays::Backoff(backoff),
        within_ms: None,
    };
    let breaker = Breaker {
        failure_threshold: 7,
        cooldown_ms: 31_000,
        half_open_max_calls: 4,
    };
    assert_eq!(
        (executor.retry.clone(), executor.breaker),
        (Some(retry), Some(breaker))
    );
    let limit = RateLimit {
        max_per_second: Some(100),
        max_per_minute: Some(5_000),
        max_per_hour: Some(50_000),
    };
    assert_eq!(executor.rate_limit, Some(limit));
    let timeout_ms = Some(310_000);
    assert_eq!(executor.tracking, Tracking::Async { timeout_ms });
    let health = Health {
        window_ms: 310_000,
        decay_millionths: 800_000,
        min_samples: 11,
    };
    assert_eq!(plan.health, Some(health));
    let cache = plan.cache.expect("the block is there");
    let events: Vec<&str> = cache
        .invalidate_on
        .iter()
        .map(|name| name.as_str())
        .collect();
    assert_eq!(cache.ttl_ms, 3_600_000);
    assert_eq!(events, ["payment.refunded", "customer.deleted"]);
}

#[test]
fn each_selection_has_its_word() {
    for (word, selection) in [
        ("static-order", Selection::StaticOrder),
        ("round-robin", Selection::RoundRobin),
        ("random", Selection::Random),
        ("health-weighted", Selection::HealthWeighted),
    ] {
        let plan = accept_plan(&format!("    selection: {word}\n    health: {{}}\n"));
        assert_eq!(plan.selection, selection, "{word}");
    }
}
