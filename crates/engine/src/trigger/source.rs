//! Notifies triggers of changes to their stream.

use super::due::{TriggerKey, disarm, rearm};
use super::live::{attach, find};
use crate::ids::{Namespace, StreamName};
use crate::limits::GROUPS_MAX;
use crate::store::StoreError;
use crate::subject::Subject;
use crate::tables::{LiveTrigger, Triggers, TriggersByStream};
use crate::turn::{Abort, Turn, TurnResult};

/// Names a stream.
type Source = (Namespace, StreamName);

/// A stream was created: triggers that wait for it begin at its first record.
pub(crate) fn stream_appeared(turn: &mut Turn<'_, '_>, source: &Source) -> Result<(), StoreError> {
    change_each(turn, source, attach)
}

/// Records of a stream came or went.
pub(crate) fn stream_changed(turn: &mut Turn<'_, '_>, source: &Source) -> Result<(), StoreError> {
    change_each(turn, source, |turn, key, live| Ok(rearm(turn, key, live)?))
}

/// A stream was deleted, and its groups with it: its triggers wait until there is another one.
pub(crate) fn stream_gone(turn: &mut Turn<'_, '_>, source: &Source) -> Result<(), StoreError> {
    change_each(turn, source, |turn, key, live| {
        live.group = None;
        live.first_found.clear();
        disarm(turn, key, live);
        Ok(())
    })
}

/// Updates each trigger of a stream. A panic quarantines the trigger, not the subject that works on the stream.
fn change_each(
    turn: &mut Turn<'_, '_>,
    source: &Source,
    change: impl Fn(&mut Turn<'_, '_>, &TriggerKey, &mut LiveTrigger) -> TurnResult<()>,
) -> Result<(), StoreError> {
    let triggers = turn.list::<TriggersByStream>(source, GROUPS_MAX as usize)?;
    for ((_, _, namespace, workflow, index), _) in triggers {
        let key = (namespace, workflow, index);
        let Some(mut record) = find(turn, &key)? else {
            continue;
        };
        let mut live = record.live.clone();
        let subject = Subject::Trigger(live.definition);
        match turn.with_subject(subject, |turn| change(turn, &key, &mut live)) {
            Ok(()) => {}
            Err(Abort::Store(error)) => return Err(error),
            Err(Abort::Rejected(rejection)) => {
                panic!("a trigger's group was checked when it became live, but {rejection}")
            }
        }
        if record.live != live {
            record.live = live;
            turn.put::<Triggers>(&key, record);
        }
    }
    Ok(())
}
