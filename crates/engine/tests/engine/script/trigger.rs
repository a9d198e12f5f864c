//! Parses commands on triggers and renders them.

use super::condition::condition;
use super::line::Line;
use super::show::option;
use super::world::World;
use flotilla_engine::definition::{
    Expression, GroupMode, Path, Root, Segment, Trigger, TriggerIndex, Variable,
};
use flotilla_engine::ids::{GroupName, Namespace, StreamName, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::DefinitionNumber;
use flotilla_engine::view::{self, DueCursor, InputJudge, TriggerFiring};
use flotilla_engine::{Body, FireTrigger, RecordId, reply};

/// `fire-trigger W trigger=N` fires what the driver would fire now, a command for each partition; without a number, of the
/// first trigger. What it says may be bent: `definition=N`, `cursor=ID`, `early` (whatever the time is), `joined` (in one batch),
/// `forget` (the first record). Inputs with `bad` in them are refused.
pub(super) fn fire(world: &World, line: &mut Line) -> Vec<Body> {
    let namespace = line.namespace();
    let workflow = WorkflowName::new(line.word()).expect("a workflow name");
    let definition = line.number("definition").map(DefinitionNumber);
    let cursor: Option<RecordId> = line.option("cursor").map(|id| id.parse().expect("an id"));
    let (is_early, is_joined) = (line.flag("early"), line.flag("joined"));
    let is_forgetful = line.flag("forget");
    let now_ms = if is_early { u64::MAX } else { world.now_ms() };
    let key = (namespace, workflow, index(line));
    let firings = view::trigger_firings(&world.store, &key, now_ms, 100);
    let commands = firings.expect("memory does not fail").into_iter();
    let mut commands: Vec<FireTrigger> = commands
        .filter_map(|firing| firing.command(&Script))
        .collect();
    if commands.is_empty() {
        // Nothing is due: a command that says so itself must be refused.
        commands.push(FireTrigger {
            workflow: key.1,
            definition: DefinitionNumber(1),
            trigger: key.2,
            partition: 0,
            cursor: RecordId::START,
            batches: vec![],
        });
    }
    for command in &mut commands {
        command.definition = definition.unwrap_or(command.definition);
        command.cursor = cursor.unwrap_or(command.cursor);
        if is_joined {
            let rest: Vec<_> = command.batches.drain(1..).collect();
            let all = rest.into_iter().flat_map(|batch| batch.records);
            command.batches[0].records.extend(all);
        }
        if is_forgetful {
            command.batches[0].records.remove(0);
        }
    }
    commands.into_iter().map(Body::FireTrigger).collect()
}

/// The result of a firing.
pub(super) fn fired(fired: &reply::TriggerFired) -> String {
    let skipped = match fired.skipped_count {
        0 => String::new(),
        count => format!(", skipped {count}"),
    };
    format!(
        "fired {}, refused {}{skipped}",
        fired.run_count, fired.refused_count
    )
}

/// `trigger=N`: which trigger of the workflow.
fn index(line: &mut Line) -> TriggerIndex {
    TriggerIndex(line.number("trigger").unwrap_or(0))
}

/// What scripts say of payloads and inputs.
pub(crate) struct Script;

impl InputJudge for Script {
    fn is_json(&self, payload: &[u8]) -> bool {
        payload.starts_with(b"{") || payload.iter().all(u8::is_ascii_digit)
    }

    fn refusal(&self, input: &Json) -> Option<String> {
        let is_bad = input.as_str().contains("bad");
        is_bad.then(|| "the input is bad".to_owned())
    }
}

pub(super) const QUESTIONS: [&str; 3] = ["trigger", "due-triggers", "firings"];

/// `trigger W`, `due-triggers limit=N`, `firings W trigger=N`
pub(super) fn answer(world: &World, verb: &str, line: &mut Line) -> Option<String> {
    if !QUESTIONS.contains(&verb) {
        return None;
    }
    let namespace = line.namespace();
    Some(match verb {
        "trigger" => {
            let name = WorkflowName::new(line.word()).expect("a workflow name");
            let found = view::triggers(&world.store, &namespace, &name);
            let found = found.expect("memory does not fail");
            match &found[..] {
                [] => "none\n".to_owned(),
                [one] => describe(one),
                several => several
                    .iter()
                    .map(|one| {
                        format!(
                            "{} {}: {}",
                            one.trigger.stream,
                            one.trigger.consumer_group,
                            describe(one)
                        )
                    })
                    .collect(),
            }
        }
        "due-triggers" => {
            let limit = line.number("limit").unwrap_or(100);
            let due = DueCursor::default().due_triggers(&world.store, world.now_ms(), limit);
            let due = due.expect("memory does not fail");
            let names = due.triggers.iter().map(|(_, name, index)| match index.0 {
                0 => name.to_string(),
                number => format!("{name}#{number}"),
            });
            let names = names.collect::<Vec<_>>().join(" ");
            format!("due [{names}]{}\n", option(" then at ", &due.next_due_ms))
        }
        "firings" => {
            let name = WorkflowName::new(line.word()).expect("a workflow name");
            let key = (namespace, name, index(line));
            let firings = view::trigger_firings(&world.store, &key, world.now_ms(), 100);
            let firings = firings.expect("memory does not fail");
            firings.iter().map(firing_in_words).collect()
        }
        _ => return None,
    })
}

fn describe(view: &view::TriggerView) -> String {
    let counts = &view.counts;
    let skipped = match counts.skipped_count {
        0 => String::new(),
        count => format!(" skipped {count}"),
    };
    format!(
        "{} by {} revision {}, lag {} runs {} of {}{skipped} refused {} lost {}{}\n",
        view.state.name(),
        view.version,
        view.revision,
        view.lag,
        counts.run_count,
        counts.record_count,
        counts.refused_count,
        view.lost_count,
        option(" last at ", &counts.last_fired_ms)
    )
}

fn firing_in_words(firing: &TriggerFiring) -> String {
    let more = if firing.has_more { " and more" } else { "" };
    let mut out = format!(
        "partition {} from {}: {} records{more}\n",
        firing.partition,
        firing.cursor,
        firing.records.len()
    );
    let Some(command) = firing.command(&Script) else {
        return out + "  may grow\n";
    };
    for batch in &command.batches {
        let ids: Vec<String> = batch.records.iter().map(|one| one.id.to_string()).collect();
        let refusal = option(" refused: ", &batch.refusal);
        out += &format!("  {}{refusal}\n", ids.join(" "));
    }
    out
}

/// A trigger of a definition: `events in=elsewhere group=work mode=exclusive batch=10 timeout=500 when=record.payload.n>1`
pub(super) fn defined(mut line: Line) -> Trigger {
    let stream = StreamName::new(line.word()).expect("a stream's name");
    let group = line.option("group").unwrap_or_else(|| "work".to_owned());
    let trigger = Trigger {
        stream,
        namespace: line
            .option("in")
            .map(|name| Namespace::new(name).expect("a namespace")),
        consumer_group: GroupName::new(group).expect("a group's name"),
        consumption: match line.option("mode").as_deref() {
            None | Some("shared") => GroupMode::Shared,
            Some("exclusive") => GroupMode::Exclusive,
            Some("key_shared") => GroupMode::KeyShared,
            Some(other) => panic!("expected a mode, but found {other}"),
        },
        batch_size: line.number("batch").unwrap_or(1),
        batch_timeout_ms: line.number("timeout").unwrap_or(5_000),
        when: line.option("when").map(|text| record_condition(&text)),
    };
    line.end();
    trigger
}

/// A condition with paths into `record`.
fn record_condition(text: &str) -> Expression {
    let below_record = |text: &str| Path {
        root: Root::Input,
        segments: (text.split('.').skip(1))
            .map(|field| Segment::Field(field.to_owned()))
            .collect(),
    };
    Expression {
        variables: vec![Variable::Record],
        ..condition(text, below_record)
    }
}
