//! Adding up what tasks use: tokens, money and the like (W87).

use crate::definition::StepIndex;
use crate::ids::RunNumber;
use crate::json::{self, Json};
use crate::limits::USAGE_SUMS_MAX;
use crate::run::sum_numbers;
use crate::store::StoreError;
use crate::tables::{ActionRunOwner, RunUsageRecord, RunUsages, StepUsages};
use crate::turn::{Turn, TurnResult};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Adds what a task has used to the sums of its step, of its run, and of the runs above. An action run without a workflow
/// run ignores it.
pub(super) fn add(
    turn: &mut Turn<'_, '_>,
    owner: ActionRunOwner,
    usage: Option<&Json>,
) -> TurnResult<()> {
    let (Some(usage), ActionRunOwner::Step { run, activation }) = (usage, owner) else {
        return Ok(());
    };
    let mut owner = turn.load_run(run)?;
    let active = owner.activation(turn, activation)?;
    let step = active.map(|active| active.step);
    let mut above = owner.record.parent;
    turn.put_back_run(owner);
    if let Some(step) = step {
        add_to_step(turn, (run, step), usage)?;
    }
    let mut sums = of_run(turn, run)?;
    sums.own = sum(&sums.own, usage);
    turn.put::<RunUsages>(&run, sums);
    // Runs nest to a bounded depth (W17).
    while let Some(link) = above {
        let Some(parent) = turn.run_record(link.run)? else {
            break;
        };
        above = parent.parent;
        let mut sums = of_run(turn, link.run)?;
        sums.below = sum(&sums.below, usage);
        turn.put::<RunUsages>(&link.run, sums);
    }
    Ok(())
}

fn add_to_step(
    turn: &mut Turn<'_, '_>,
    key: (RunNumber, StepIndex),
    usage: &Json,
) -> Result<(), StoreError> {
    let sums = turn.get::<StepUsages>(&key)?;
    let sums = sums.map_or_else(empty, Arc::unwrap_or_clone);
    turn.put::<StepUsages>(&key, sum(&sums, usage));
    Ok(())
}

fn of_run(turn: &mut Turn<'_, '_>, run: RunNumber) -> Result<RunUsageRecord, StoreError> {
    let sums = turn.get::<RunUsages>(&run)?;
    let new = || RunUsageRecord {
        own: empty(),
        below: empty(),
    };
    Ok(sums.map_or_else(new, Arc::unwrap_or_clone))
}

fn empty() -> Json {
    Json::from_checked("{}")
}

/// Adds the numbers by name, as `merge` adds numbers. A number that would overflow its sum is left out, and so is a name beyond
/// [`USAGE_SUMS_MAX`].
fn sum(sums: &Json, usage: &Json) -> Json {
    let mut by_name: BTreeMap<&str, String> = json::fields(sums.as_str())
        .map(|(name, sum)| (name, sum.to_owned()))
        .collect();
    for (name, number) in json::fields(usage.as_str()) {
        let has_room = by_name.len() < USAGE_SUMS_MAX;
        match by_name.get_mut(name) {
            Some(sum) => {
                if let Ok(added) = sum_numbers([sum.as_str(), number].into_iter()) {
                    *sum = added;
                }
            }
            None if has_room && json::is_number(number) => {
                by_name.insert(name, number.to_owned());
            }
            None => {}
        }
    }
    let fields: Vec<String> = by_name
        .iter()
        .map(|(name, sum)| format!("{name}:{sum}"))
        .collect();
    Json::from_checked(format!("{{{}}}", fields.join(",")))
}
