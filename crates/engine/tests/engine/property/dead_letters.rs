//! Which letters random moves choose; and the bound of a queue (A6).

use super::moves::Move;
use super::player::{Player, command};
use crate::{invariants, samples};
use flotilla_engine::ids::{ActionName, ActionRunNumber, Namespace, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{
    DEAD_LETTERS_BYTES_MAX, DEAD_LETTERS_MAX, LABEL_QUEUES_MAX, REQUEUE_BYTES_MAX,
    REQUEUED_PER_COMMAND_MAX,
};
use flotilla_engine::rows::DeadLetters;
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{
    AssignTasks, Body, DeadLetterSelector, Entry, InvokeAction, Offer, PurgeDeadLetters, Rejection,
    Reply, RequeueDeadLetters, reply, view,
};
use std::collections::BTreeMap;

/// One of the letters, or all so far.
pub(super) fn choice(store: &MemoryStore, pick: Option<u8>) -> DeadLetterSelector {
    let dead_letters = invariants::rows::<DeadLetters>(store, &());
    let numbers: Vec<ActionRunNumber> = dead_letters
        .into_iter()
        .map(|(_, dead_letter)| dead_letter.action_run)
        .collect();
    let Some(pick) = pick else {
        return ALL;
    };
    let position = usize::from(pick) % numbers.len().max(1);
    let number = numbers.get(position).copied();
    DeadLetterSelector::One(number.unwrap_or(ActionRunNumber(1)))
}

const ALL: DeadLetterSelector = DeadLetterSelector::UpTo(u64::MAX);

#[test]
fn a_full_queue_drops_its_oldest_letter() {
    let mut player = Player::new();
    fill(&mut player);
    assert_eq!(counts(&player), (DEAD_LETTERS_MAX, 0));
    // What is run again and fails again is a new letter: there is room for it.
    let up_to = DeadLetterSelector::UpTo(2);
    let replies = play(&mut player, vec![requeue(up_to)]);
    let Ok(Reply::DeadLettersRequeued(reply::DeadLettersRequeued {
        action_runs,
        has_more: false,
    })) = &replies[0]
    else {
        panic!("{replies:?}");
    };
    assert_eq!(action_runs.len(), 3);
    fail_all(&mut player);
    assert_eq!(counts(&player), (DEAD_LETTERS_MAX, 0));
    play(&mut player, vec![invoke()]);
    fail_all(&mut player);
    assert_eq!(counts(&player), (DEAD_LETTERS_MAX, 1));
    let dead_letters = invariants::rows::<DeadLetters>(&player.store, &());
    assert_eq!(
        dead_letters[0].1.action_run,
        ActionRunNumber(5),
        "the fourth was the oldest"
    );
    invariants::check(&player.store);
}

#[test]
fn a_full_queue_drops_what_failed_first_not_what_began_first() {
    let mut player = Player::new();
    play(&mut player, vec![invoke()]);
    let slow = std::mem::take(&mut player.tokens);
    fill(&mut player);
    player.tokens = slow;
    fail_all(&mut player);
    assert_eq!(counts(&player), (DEAD_LETTERS_MAX, 1));
    let dead_letters = invariants::rows::<DeadLetters>(&player.store, &());
    let [first, .., last] = &dead_letters[..] else {
        panic!("{} letters", dead_letters.len());
    };
    assert_eq!(first.1.action_run, ActionRunNumber(3));
    assert_eq!(last.1.action_run, ActionRunNumber(1));
    invariants::check(&player.store);
}

#[test]
fn a_queue_is_bounded_in_bytes_and_so_is_a_requeue() {
    const LARGE: usize = 1 << 20;
    let mut player = Player::new();
    let large = || Json::from_checked(format!("\"{}\"", "x".repeat(LARGE - 2)));
    for _ in 0..DEAD_LETTERS_BYTES_MAX / LARGE as u64 {
        play(&mut player, vec![invoke_with(large())]);
        fail_all(&mut player);
    }
    // The constant that each counts besides pushes the last one over the bound.
    let fitting = DEAD_LETTERS_BYTES_MAX / LARGE as u64 - 1;
    assert_eq!(counts(&player), (fitting, 1));
    let replies = play(&mut player, vec![requeue(ALL)]);
    let Ok(Reply::DeadLettersRequeued(reply::DeadLettersRequeued {
        action_runs,
        has_more: true,
    })) = &replies[0]
    else {
        panic!("{replies:?}");
    };
    assert_eq!(
        action_runs.len() as u64,
        REQUEUE_BYTES_MAX / LARGE as u64 - 1
    );
    invariants::check(&player.store);
}

#[test]
fn a_requeue_stops_where_no_set_of_labels_is_free_and_continues_later() {
    const COUNT: usize = 2 * REQUEUED_PER_COMMAND_MAX;
    let mut player = Player::new();
    let label = |at: usize| (format!("k{at}"), "v".to_owned());
    let all: BTreeMap<_, _> = (0..COUNT).map(label).collect();
    for first in [0, REQUEUED_PER_COMMAND_MAX] {
        let of_one = |at| labeled(BTreeMap::from([label(at)]));
        let bodies = (first..first + REQUEUED_PER_COMMAND_MAX)
            .map(of_one)
            .collect();
        play_with(&mut player, &all, bodies);
        fail_all(&mut player);
    }
    assert_eq!(counts(&player), (COUNT as u64, 0));
    let requeued = |player: &mut Player| match play(player, vec![requeue(ALL)]).remove(0) {
        Ok(Reply::DeadLettersRequeued(reply)) => (reply.action_runs.len(), reply.has_more),
        other => panic!("{other:?}"),
    };
    assert_eq!(requeued(&mut player), (REQUEUED_PER_COMMAND_MAX, true));
    let left = LABEL_QUEUES_MAX - REQUEUED_PER_COMMAND_MAX;
    assert_eq!(requeued(&mut player), (left, true));
    assert_eq!(requeued(&mut player), (0, true));
    let one = choice(&player.store, Some(0));
    let refused = play(&mut player, vec![requeue(one)]).remove(0);
    assert!(
        matches!(refused, Err(Rejection::LimitExceeded { .. })),
        "{refused:?}"
    );
    // The tasks are taken, and end.
    play_with(&mut player, &all, vec![assign()]);
    fail_all(&mut player);
    assert!(requeued(&mut player).0 > 0);
    invariants::check(&player.store);
}

#[test]
fn many_letters_are_requeued_and_purged_in_pieces() {
    let mut player = Player::new();
    fill(&mut player);
    let replies = play(&mut player, vec![requeue(ALL)]);
    let Ok(Reply::DeadLettersRequeued(reply::DeadLettersRequeued {
        action_runs,
        has_more: true,
    })) = &replies[0]
    else {
        panic!("{replies:?}");
    };
    assert_eq!(action_runs.len(), REQUEUED_PER_COMMAND_MAX);
    let mut purged = 0;
    loop {
        let replies = play(&mut player, vec![purge()]);
        let Ok(Reply::DeadLettersPurged(reply::DeadLettersPurged { count, has_more })) = replies[0]
        else {
            panic!("{replies:?}");
        };
        purged += u64::from(count);
        if !has_more {
            break;
        }
    }
    assert_eq!(purged, DEAD_LETTERS_MAX - REQUEUED_PER_COMMAND_MAX as u64);
    assert_eq!(counts(&player), (0, 0));
    invariants::check(&player.store);
}

/// As many letters as a queue may hold.
fn fill(player: &mut Player) {
    const PIECE: u64 = 1_000;
    for _ in 0..DEAD_LETTERS_MAX / PIECE {
        play(player, (0..PIECE).map(|_| invoke()).collect());
        fail_all(player);
    }
}

/// Fails every task that was handed out.
fn fail_all(player: &mut Player) {
    let tokens = std::mem::take(&mut player.tokens).into_iter();
    let replies = play(player, tokens.map(samples::failed).collect());
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
}

fn invoke() -> Body {
    invoke_with(Json::null())
}

fn invoke_with(input: Json) -> Body {
    invoke_of(input, BTreeMap::new())
}

fn labeled(labels: BTreeMap<String, String>) -> Body {
    invoke_of(Json::null(), labels)
}

fn invoke_of(input: Json, labels: BTreeMap<String, String>) -> Body {
    Body::InvokeAction(InvokeAction {
        name: action(),
        input,
        priority: 10,
        delay_ms: 0,
        labels,
        idempotency_key: None,
    })
}

/// Assigns what waits to the entry's offers.
fn assign() -> Body {
    Body::AssignTasks(AssignTasks { action: action() })
}

fn requeue(dead_letters: DeadLetterSelector) -> Body {
    let action = action();
    Body::RequeueDeadLetters(RequeueDeadLetters {
        action,
        dead_letters,
    })
}

fn purge() -> Body {
    Body::PurgeDeadLetters(PurgeDeadLetters {
        action: action(),
        dead_letters: ALL,
    })
}

/// Plays commands with a worker that takes all that comes of them without labels.
fn play(player: &mut Player, bodies: Vec<Body>) -> Vec<Result<Reply, Rejection>> {
    play_with(player, &BTreeMap::new(), bodies)
}

fn offer(labels: &BTreeMap<String, String>) -> Offer {
    Offer {
        namespace: Namespace::default_namespace(),
        worker: WorkerId::new("w0").expect("an id"),
        poll: 1,
        actions: vec![action()],
        labels: labels.clone(),
        slots: 10_000,
    }
}

/// As [`play`], with a worker that has labels.
fn play_with(
    player: &mut Player,
    labels: &BTreeMap<String, String>,
    bodies: Vec<Body>,
) -> Vec<Result<Reply, Rejection>> {
    let idle = Move {
        forward_ms: 1,
        offers: Vec::new(),
        commands: Vec::new(),
    };
    let entry = Entry {
        offers: vec![offer(labels)],
        commands: bodies.into_iter().map(command).collect(),
        ..player.entry(&idle)
    };
    player.play(&entry).replies
}

fn action() -> ActionName {
    ActionName::new("a").expect("a name")
}

/// Letters now, and letters that were dropped.
fn counts(player: &Player) -> (u64, u64) {
    let namespace = Namespace::default_namespace();
    let counts = view::dead_letter_queue(&player.store, &namespace, &action()).expect("memory");
    (counts.dead_letter_count, counts.dropped_count)
}
