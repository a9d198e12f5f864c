//! Moves on triggers: what a leader's driver would propose, and what it never should.

use super::data::stream_name;
use super::player::{create, pick};
use flotilla_engine::definition::TriggerIndex;
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::DefinitionNumber;
use flotilla_engine::store::MemoryStore;
use flotilla_engine::view::{self, DueCursor, InputJudge};
use flotilla_engine::{Body, DeleteWorkflow, FireTrigger, RecordId, SetWorkflowEnabled};
use proptest::prelude::*;

const WORKFLOWS: [&str; 3] = ["follow", "chase", "watch"];
/// Two of them are those of the consumers.
const GROUPS: [&str; 3] = ["g", "h", "own"];

/// None, one that depends on the record, and one that fails.
const CONDITIONS: [&str; 4] = ["", "", " when=record.partition>0", " when=record.payload>4"];

/// A command on triggers.
#[derive(Clone, Debug)]
pub(in crate::property) enum TriggerIntent {
    /// A revision of one of a few contents becomes the latest.
    Create {
        workflow: u8,
        /// Each with its stream, its group and its condition.
        triggers: Vec<(u8, u8, u8)>,
        batch_size: u8,
    },
    Enable {
        workflow: u8,
        is_enabled: bool,
    },
    Delete {
        workflow: u8,
    },
    /// What is due, or will be; with a wrong, as another leader might have proposed it.
    Fire {
        pick: u8,
        is_early: bool,
        is_refused: bool,
        wrong: Option<u8>,
    },
}

pub(super) fn intents() -> impl Strategy<Value = TriggerIntent> {
    let triggers = prop::collection::vec((0..3_u8, 0..3_u8, 0..4_u8), 0..3);
    let wrong = prop::option::weighted(0.2, 0..4_u8);
    prop_oneof![
        3 => (0..3_u8, triggers, 1..4_u8).prop_map(|(workflow, triggers, batch_size)| {
            TriggerIntent::Create {
                workflow,
                triggers,
                batch_size,
            }
        }),
        1 => (0..3_u8, prop::bool::weighted(0.7))
            .prop_map(|(workflow, is_enabled)| TriggerIntent::Enable { workflow, is_enabled }),
        1 => (0..3_u8).prop_map(|workflow| TriggerIntent::Delete { workflow }),
        6 => (any::<u8>(), prop::bool::weighted(0.2), prop::bool::weighted(0.2), wrong).prop_map(
            |(pick, is_early, is_refused, wrong)| TriggerIntent::Fire {
                pick,
                is_early,
                is_refused,
                wrong,
            }
        ),
    ]
}

/// The command that an intent stands for now.
pub(super) fn body(store: &MemoryStore, intent: &TriggerIntent) -> Body {
    match intent {
        TriggerIntent::Create {
            workflow,
            triggers,
            batch_size,
        } => {
            let trigger = |(stream, group, condition): &(u8, u8, u8)| {
                let (stream, group) = (stream_name(*stream), pick(&GROUPS, *group));
                let when = pick(&CONDITIONS, *condition);
                format!(" trigger {stream} group={group} batch={batch_size} timeout=300{when}\n")
            };
            let triggers: String = triggers.iter().map(trigger).collect();
            let name = pick(&WORKFLOWS, *workflow);
            let body = "start: wait go -> success=flo.Completed";
            create(&format!("define {name} 1\n{triggers} {body}"), "triggered")
        }
        TriggerIntent::Enable {
            workflow,
            is_enabled,
        } => Body::SetWorkflowEnabled(SetWorkflowEnabled {
            workflow: name(pick(&WORKFLOWS, *workflow)),
            is_enabled: *is_enabled,
        }),
        TriggerIntent::Delete { workflow } => Body::DeleteWorkflow(DeleteWorkflow {
            workflow: name(pick(&WORKFLOWS, *workflow)),
        }),
        TriggerIntent::Fire {
            pick,
            is_early,
            is_refused,
            wrong,
        } => {
            let now_ms = view::cluster(store).expect("memory does not fail").now_ms;
            let now_ms = if *is_early { u64::MAX } else { now_ms };
            let mut fire = firing(store, *pick, now_ms, &Verdict(*is_refused));
            if let Some(wrong) = wrong {
                bend(&mut fire, *wrong);
            }
            Body::FireTrigger(fire)
        }
    }
}

fn firing(store: &MemoryStore, pick: u8, now_ms: u64, verdict: &Verdict) -> FireTrigger {
    let due = DueCursor::default()
        .due_triggers(store, now_ms, 100)
        .expect("memory does not fail");
    let default = Namespace::default_namespace();
    let position = usize::from(pick) % due.triggers.len().max(1);
    let key = due.triggers.get(position).cloned();
    let key = key.unwrap_or_else(|| (default, name("follow"), TriggerIndex(0)));
    let firings = view::trigger_firings(store, &key, now_ms, 1).expect("memory");
    let command = firings.first().and_then(|firing| firing.command(verdict));
    command.unwrap_or_else(|| FireTrigger {
        workflow: key.1,
        definition: DefinitionNumber(1),
        trigger: key.2,
        partition: 0,
        cursor: RecordId::START,
        batches: Vec::new(),
    })
}

fn bend(fire: &mut FireTrigger, wrong: u8) {
    match wrong {
        0 => fire.cursor = fire.cursor.next(),
        1 => fire.definition = DefinitionNumber(fire.definition.0 + 1),
        2 => fire.partition += 1,
        _ => {
            if let Some(batch) = fire.batches.first_mut() {
                batch.records.remove(0);
            }
        }
    }
}

/// The same for every input.
struct Verdict(bool);

impl InputJudge for Verdict {
    fn is_json(&self, _: &[u8]) -> bool {
        false
    }

    fn refusal(&self, _: &Json) -> Option<String> {
        self.0.then(|| "refused".to_owned())
    }
}

fn name(text: &str) -> WorkflowName {
    WorkflowName::new(text).expect("a workflow name")
}
