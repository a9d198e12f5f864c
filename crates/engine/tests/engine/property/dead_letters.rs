//! Which letters random moves choose; and the bound of a queue (A6).

use super::moves::Move;
use super::player::{Player, command};
use crate::invariants;
use flotilla_engine::ids::{ActionName, ActionRunNumber, Namespace, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::limits::{DEAD_LETTERS_MAX, REQUEUE_LETTERS_MAX};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::tables::DeadLetters;
use flotilla_engine::{
    Body, Entry, FailKind, FailTask, FailureOutcome, InvokeAction, LetterChoice, Offer,
    PurgeDeadLetters, Rejection, Reply, RequeueDeadLetters, reply, view,
};
use std::collections::BTreeMap;

/// One of the letters, or all so far.
pub(super) fn choice(store: &MemoryStore, pick: Option<u8>) -> LetterChoice {
    let letters = invariants::rows::<DeadLetters>(store, &());
    let numbers: Vec<ActionRunNumber> = letters.into_iter().map(|(key, _)| key.2).collect();
    let Some(pick) = pick else {
        return ALL;
    };
    let position = usize::from(pick) % numbers.len().max(1);
    let number = numbers.get(position).copied();
    LetterChoice::One(number.unwrap_or(ActionRunNumber(1)))
}

const ALL: LetterChoice = LetterChoice::UpTo(ActionRunNumber(u64::MAX));

#[test]
fn a_full_queue_drops_its_oldest_letter() {
    let mut player = Player::new();
    fill(&mut player);
    assert_eq!(counts(&player), (DEAD_LETTERS_MAX, 0));
    // What is run again and fails again is a new letter: there is room for it.
    let up_to = LetterChoice::UpTo(ActionRunNumber(3));
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
    let letters = invariants::rows::<DeadLetters>(&player.store, &());
    assert_eq!(
        letters[0].0.2,
        ActionRunNumber(5),
        "the fourth was the oldest"
    );
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
    assert_eq!(action_runs.len(), REQUEUE_LETTERS_MAX);
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
    assert_eq!(purged, DEAD_LETTERS_MAX - REQUEUE_LETTERS_MAX as u64);
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
    let fail = |token| {
        Body::FailTask(FailTask {
            token,
            kind: FailKind::NoRetry,
            code: None,
            message: "broken".to_owned(),
            outcome: FailureOutcome::Failure,
        })
    };
    let replies = play(player, tokens.map(fail).collect());
    assert!(replies.iter().all(Result::is_ok), "{replies:?}");
}

fn invoke() -> Body {
    Body::InvokeAction(InvokeAction {
        name: action(),
        input: Json::null(),
        priority: 10,
        delay_ms: 0,
        labels: BTreeMap::new(),
        idempotency_key: None,
    })
}

fn requeue(letters: LetterChoice) -> Body {
    let action = action();
    Body::RequeueDeadLetters(RequeueDeadLetters { action, letters })
}

fn purge() -> Body {
    Body::PurgeDeadLetters(PurgeDeadLetters {
        action: action(),
        letters: ALL,
    })
}

/// Plays commands with a worker that takes all that comes of them.
fn play(player: &mut Player, bodies: Vec<Body>) -> Vec<Result<Reply, Rejection>> {
    let idle = Move {
        forward_ms: 1,
        offers: Vec::new(),
        commands: Vec::new(),
    };
    let entry = Entry {
        offers: vec![Offer {
            namespace: Namespace::default_namespace(),
            worker: WorkerId::new("w0").expect("an id"),
            poll: 1,
            actions: vec![action()],
            labels: BTreeMap::new(),
            slots: 10_000,
        }],
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
    (counts.letters_count, counts.dropped_count)
}
