//! Parses commands on dead letters and renders them.

use super::line::Line;
use super::show::option;
use super::world::World;
use flotilla_engine::ids::{ActionName, ActionRunNumber};
use flotilla_engine::rows::DeadLetterPlaces;
use flotilla_engine::view;
use flotilla_engine::{Body, DeadLetterSelector, PurgeDeadLetters, RequeueDeadLetters};

/// `requeue ACTION arun-1`, `purge ACTION up-to arun-9`
pub(super) fn command(world: &World, verb: &str, line: &mut Line) -> Option<Body> {
    if !matches!(verb, "requeue" | "purge") {
        return None;
    }
    let is_many = line.flag("up-to");
    let action = ActionName::new(line.word()).expect("an action name");
    let number = ActionRunNumber::from_id(&line.word()).expect("an action run");
    let dead_letters = if is_many {
        let places = world.rows::<DeadLetterPlaces>();
        let mut places = places.iter();
        let place = places.find(|((_, of, of_run), _)| (of, *of_run) == (&action, number));
        DeadLetterSelector::UpTo(place.map_or(u64::MAX, |(_, place)| *place))
    } else {
        DeadLetterSelector::One(number)
    };
    Some(match verb {
        "requeue" => Body::RequeueDeadLetters(RequeueDeadLetters {
            action,
            dead_letters,
        }),
        _ => Body::PurgeDeadLetters(PurgeDeadLetters {
            action,
            dead_letters,
        }),
    })
}

/// The letters of an action, newest first, with their inputs.
pub(super) fn list(world: &World, line: &mut Line) -> String {
    let namespace = line.namespace();
    let action = ActionName::new(line.word()).expect("an action name");
    let counts = view::dead_letter_queue(&world.store, &namespace, &action).expect("memory");
    let page = view::dead_letters(
        &world.store,
        &namespace,
        &action,
        view::PageRange::first(100),
    );
    let mut out = format!(
        "{} letters, {} dropped\n",
        counts.dead_letter_count, counts.dropped_count
    );
    for dead_letter in page.expect("memory").items {
        let found = view::dead_letter(&world.store, &namespace, &action, dead_letter.action_run);
        let (view, input) = found.expect("memory").expect("a listed letter is there");
        let record = view.record;
        let error = record
            .error
            .map(|error| format!("{}: {}", error.code, error.message));
        let step = record
            .step
            .map(|(run, step)| format!("{run}{}", option(" ", &step)));
        out.push_str(&format!(
            "  {} {} after {} attempts at {}{}{} input={}\n",
            view.action_run,
            record.status.name(),
            record.attempts,
            record.died_at_ms,
            option(" of ", &step),
            option(" ", &error),
            input.as_str()
        ));
    }
    out
}

/// The reply to `requeue`.
pub(super) fn requeued(action_runs: &[ActionRunNumber], has_more: bool) -> String {
    let numbers: Vec<String> = action_runs.iter().map(ToString::to_string).collect();
    format!("requeued [{}]{}", numbers.join(" "), more(has_more))
}

/// The reply to `purge`.
pub(super) fn purged(count: u32, has_more: bool) -> String {
    format!("purged {count}{}", more(has_more))
}

fn more(has_more: bool) -> &'static str {
    if has_more { ", and more are left" } else { "" }
}
