//! What workers return beside an outcome and an output.

use flotilla_engine::DueTime;
use flotilla_engine::json::Json;

/// A patch of the state, which may remove a key or not be an object (W66).
pub(super) fn state_patch(token: u8) -> Option<Json> {
    let patches = [
        r#"{"a":{"b":1}}"#,
        r#"{"a":{"b":null}}"#,
        r#"{"a":null}"#,
        "[1]",
    ];
    let patch = patches.get(usize::from(token) % 7)?;
    Some(Json::from_checked((*patch).to_owned()))
}

/// Some results ask for a delay.
pub(super) fn not_before(pick: u8) -> Option<DueTime> {
    (pick % 3 == 1).then_some(DueTime::After { ms: 20 })
}

/// Some attempts have used something, and one reports what cannot be added up (W87).
pub(super) fn usage(token: u8) -> Option<Json> {
    let usages = [
        r#"{"tokens":3}"#,
        r#"{"tokens":2,"cost":0.5}"#,
        r#"{"cost":"much"}"#,
    ];
    let usage = usages.get(usize::from(token) % 5)?;
    Some(Json::from_checked((*usage).to_owned()))
}
