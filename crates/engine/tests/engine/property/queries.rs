//! A query for runs gives the same result as a check of every run, page by page, while runs are added (W22).

use super::moves::{Intent, Move, histories};
use super::player::{Player, command, create, default_key};
use super::{config, play_all};
use crate::invariants::{read, rows};
use flotilla_engine::definition::Definition;
use flotilla_engine::ids::{AttributeName, Namespace, RunId};
use flotilla_engine::json::Json;
use flotilla_engine::limits::RUN_QUERY_ROWS_MAX;
use flotilla_engine::rows::{AttributeValue, Definitions, RunRecord, RunStatus, Runs};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::view::{self, Comparison, Condition, Equality, PageRange, RunQuery};
use flotilla_engine::{Body, Entry, StartRun};
use proptest::prelude::*;

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn pages_of_a_query_hold_what_a_look_at_every_run_finds(
        history in histories(),
        query in queries(),
        limit in 1..5_usize,
    ) {
        let mut player = Player::new();
        let _ = play_all(&mut player, &history);
        let expected = look_at_all(&player.store, &query);
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let range = PageRange {
                after: token.as_deref(),
                limit,
            };
            let page = view::runs(&player.store, &namespace(), &query, range).expect("memory");
            prop_assert!(page.items.len() <= limit);
            found.extend(page.items.into_iter().map(|row| row.run_id));
            // What is added between two pages is newer than both.
            let _ = play_all(&mut player, &[start()]);
            token = page.next;
            if token.is_none() {
                break;
            }
        }
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn a_rare_match_takes_more_pages_and_no_page_reads_everything() {
    let mut player = Player::new();
    let instant = "define instant 1\n start: run @missing -> failure=flo.Completed";
    play(&mut player, vec![create(instant, "as written")]);
    let workflow = default_key("instant").1;
    let start = || Body::StartRun(StartRun::new(workflow.clone(), Json::null()));
    for _ in 0..11 {
        play(
            &mut player,
            (0..RUN_QUERY_ROWS_MAX / 10).map(|_| start()).collect(),
        );
    }
    let query = RunQuery {
        conditions: vec![
            // Too many to be collected.
            Condition::CompletedAt(Comparison::GreaterOrEqual, 0),
            Condition::Workflow(Equality::NotEqual, workflow.clone()),
        ],
    };
    let page = |after: Option<&[u8]>| {
        let range = PageRange { after, limit: 10 };
        view::runs(&player.store, &namespace(), &query, range).expect("memory")
    };
    let (mut pages_count, mut token) = (0, None);
    loop {
        let next = page(token.as_deref());
        assert_eq!(next.items, []);
        pages_count += 1;
        token = next.next;
        if token.is_none() {
            break;
        }
    }
    // Each row costs a look at its index and one at the run.
    assert_eq!(pages_count, 3);
    assert_eq!(page(Some(b"of the caller's own")).items, []);
}

fn play(player: &mut Player, bodies: Vec<Body>) {
    let commands = bodies.into_iter().map(command).collect();
    let entry = Entry {
        commands,
        ..player.entry(&start())
    };
    player.play(&entry);
}

fn namespace() -> Namespace {
    Namespace::default_namespace()
}

fn start() -> Move {
    let start = Intent::Start {
        workflow: 4,
        key: None,
        id: None,
        is_traced: false,
    };
    Move {
        forward_ms: 1,
        offers: Vec::new(),
        commands: vec![(start, None)],
    }
}

fn queries() -> impl Strategy<Value = RunQuery> {
    prop::collection::vec(conditions(), 0..4).prop_map(|conditions| RunQuery { conditions })
}

fn conditions() -> impl Strategy<Value = Condition> {
    let equality = || prop_oneof![3 => Just(Equality::Equal), 1 => Just(Equality::NotEqual)];
    let workflow = prop::sample::select(vec!["work", "leaf", "rounds", "timed", "none"]);
    prop_oneof![
        (equality(), workflow)
            .prop_map(|(equality, name)| Condition::Workflow(equality, default_key(name).1)),
        (equality(), prop::sample::select(RunStatus::ALL.to_vec()))
            .prop_map(|(equality, status)| Condition::Status(equality, status)),
        (comparisons(), 0..6_000_u64)
            .prop_map(|(comparison, at_ms)| Condition::StartedAt(comparison, at_ms)),
        (comparisons(), 0..6_000_u64)
            .prop_map(|(comparison, at_ms)| Condition::CompletedAt(comparison, at_ms)),
        (
            prop::sample::select(vec!["n", "m"]),
            comparisons(),
            0..10_u64,
            any::<bool>()
        )
            .prop_map(attribute),
    ]
}

fn comparisons() -> impl Strategy<Value = Comparison> {
    prop::sample::select(vec![
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ])
}

fn attribute((name, comparison, value, is_number): (&str, Comparison, u64, bool)) -> Condition {
    let text = AttributeValue::String(value.to_string());
    let number = AttributeValue::Number(Json::from_checked(format!("{value}.0")));
    Condition::Attribute {
        name: AttributeName::new(name).expect("a name"),
        comparison,
        values: if is_number {
            vec![text, number]
        } else {
            vec![text]
        },
    }
}

/// The ids of all runs of which every condition holds, newest first.
fn look_at_all(store: &MemoryStore, query: &RunQuery) -> Vec<RunId> {
    let mut found = Vec::new();
    let newest_first = rows::<Runs>(store, &()).into_iter().rev();
    for (_, run) in newest_first.filter(|(_, run)| run.namespace == namespace()) {
        let record = read::<Definitions>(store, &run.definition).expect("a run is pinned");
        let mut conditions = query.conditions.iter();
        if conditions.all(|condition| is_met(condition, &run, &record.definition)) {
            found.push(run.id);
        }
    }
    found
}

fn is_met(condition: &Condition, run: &RunRecord, definition: &Definition) -> bool {
    match condition {
        Condition::Workflow(equality, name) => {
            (definition.name == *name) == (*equality == Equality::Equal)
        }
        Condition::Status(equality, status) => {
            (run.status == *status) == (*equality == Equality::Equal)
        }
        Condition::StartedAt(comparison, at_ms) => compare(run.started_at_ms, *comparison, *at_ms),
        Condition::CompletedAt(comparison, at_ms) => run
            .completed_at_ms
            .is_some_and(|completed_ms| compare(completed_ms, *comparison, *at_ms)),
        Condition::Attribute {
            name,
            comparison,
            values,
        } => {
            // The only attribute of these definitions is a whole number called `n`.
            let [_, AttributeValue::Number(wanted)] = values.as_slice() else {
                return false;
            };
            let wanted = wanted
                .as_str()
                .trim_end_matches(".0")
                .parse()
                .expect("whole");
            match run.attributes.get(&0) {
                Some(AttributeValue::Number(found)) if name.as_str() == "n" => {
                    compare(found.as_str().parse().expect("whole"), *comparison, wanted)
                }
                _ => false,
            }
        }
    }
}

fn compare(found: u64, comparison: Comparison, wanted: u64) -> bool {
    match comparison {
        Comparison::Equal => found == wanted,
        Comparison::NotEqual => found != wanted,
        Comparison::Less => found < wanted,
        Comparison::LessOrEqual => found <= wanted,
        Comparison::Greater => found > wanted,
        Comparison::GreaterOrEqual => found >= wanted,
    }
}
