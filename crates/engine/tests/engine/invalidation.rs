//! Invalidation events and the index by which they find plans (W37).

use crate::replica::Replica;
use crate::script::define;
use crate::{invariants, samples};
use flotilla_engine::definition::Definition;
use flotilla_engine::ids::WorkflowName;
use flotilla_engine::json::Json;
use flotilla_engine::limits::{INVALIDATED_PLANS_MAX, INVALIDATION_EVENTS_MAX, PLANS_MAX};
use flotilla_engine::rows::{Definitions, PlansByEvent};
use flotilla_engine::{
    Body, CreateDefinition, InvalidateCache, PlanRef, Rejection, Reply, StartRun, reply,
};
use std::fmt::Write;

/// A definition with many plans, of which its start executes the one that comes last in the order of names.
fn definition(name: &str, plans_count: usize) -> Definition {
    let mut text = format!("define {name} 1");
    for plan in 0..plans_count {
        write!(
            text,
            "\n plan p{plan} cache(1000 {{input.n}} on=refunded)\n executor p{plan} main @charge"
        )
        .expect("a string takes any text");
    }
    text.push_str("\n start: run @plan/p9 -> success=flo.Completed failure=flo.Failed");
    define(&text)
}

fn create(definition: Definition) -> Body {
    Body::CreateDefinition(Box::new(CreateDefinition {
        definition,
        source: String::new(),
        make_latest: true,
    }))
}

fn start(workflow: &str) -> Body {
    Body::StartRun(StartRun::new(
        WorkflowName::new(workflow).expect("a name"),
        Json::from_checked("{\"n\":1}".to_owned()),
    ))
}

fn invalidate(after: Option<PlanRef>) -> Body {
    Body::InvalidateCache(InvalidateCache {
        event: samples::name("refunded"),
        workflow: None,
        after,
    })
}

#[test]
fn an_event_drops_caches_in_bounded_batches_and_reads_no_definition() {
    let mut replica = Replica::new();
    let workflows_count = INVALIDATED_PLANS_MAX / PLANS_MAX + 1;
    for number in 0..workflows_count {
        let name = format!("w{number:02}");
        replica
            .ask(create(definition(&name, PLANS_MAX)))
            .expect("accepted");
        replica.ask(start(&name)).expect("accepted");
    }
    let (mut after, mut counts) = (None, Vec::new());
    loop {
        let reply = replica.ask(invalidate(after));
        let Ok(Reply::CacheInvalidated(reply)) = reply else {
            panic!("expected a batch, but it is {reply:?}");
        };
        assert!(replica.rows <= INVALIDATED_PLANS_MAX + 1);
        assert_eq!(replica.lookups_of::<Definitions>(), 0);
        counts.push(reply.plan_count as usize);
        if reply.next.is_none() {
            break;
        }
        after = reply.next;
    }
    // The plan that the last workflow has executed is in the second batch.
    assert_eq!(counts, [workflows_count - 1, 1]);
    invariants::check(&replica.store);
}

#[test]
fn the_index_follows_the_latest_revision_and_the_one_that_was_executed_last() {
    let mut replica = Replica::new();
    replica.ask(create(definition("w", 10))).expect("accepted");
    replica.ask(start("w")).expect("accepted");
    let listed = |replica: &Replica| invariants::rows::<PlansByEvent>(&replica.store, &()).len();
    assert_eq!(listed(&replica), 10);
    let mut without = definition("w", 10);
    for plan in &mut without.plans {
        plan.cache = None;
    }
    replica.ask(create(without)).expect("accepted");
    invariants::check(&replica.store);
    assert_eq!(listed(&replica), 1);
    replica.ask(start("w")).expect("accepted");
    invariants::check(&replica.store);
    assert_eq!(listed(&replica), 0);
    let nothing = reply::CacheInvalidated {
        plan_count: 0,
        next: None,
    };
    let reply = replica.ask(invalidate(None));
    assert_eq!(reply, Ok(Reply::CacheInvalidated(nothing)));
}

#[test]
fn plans_and_their_events_are_bounded_in_number() {
    let mut replica = Replica::new();
    let refused = replica.ask(create(definition("w", PLANS_MAX + 1)));
    let limit = |noun: &str, count_max: usize| Rejection::LimitExceeded {
        noun: noun.to_owned(),
        count_max: count_max as u64,
    };
    assert_eq!(refused, Err(limit("plans", PLANS_MAX)));
    let mut definition = definition("w", PLANS_MAX);
    let cache = definition.plans[0].cache.as_mut().expect("a cache");
    cache.invalidate_on = (0..=INVALIDATION_EVENTS_MAX)
        .map(|number| samples::name(&format!("event-{number}")))
        .collect();
    let refused = replica.ask(create(definition.clone()));
    let refusal = limit(
        "events of a plan's `invalidate_on`",
        INVALIDATION_EVENTS_MAX,
    );
    assert_eq!(refused, Err(refusal));
    let cache = definition.plans[0].cache.as_mut().expect("a cache");
    cache.invalidate_on.pop();
    replica.ask(create(definition)).expect("accepted");
}
