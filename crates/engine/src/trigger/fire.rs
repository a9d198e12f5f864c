//! Firing a trigger (W41).

use super::batch::{TriggerBatch, input};
use super::due::{TriggerKey, block, rearm};
use super::live::load;
use crate::definition::Trigger;
use crate::group;
use crate::ids::{Namespace, RunNumber, WorkflowName};
use crate::json::Json;
use crate::limits::{
    HOPS_MAX, READ_BYTES_MAX, READ_RECORDS_MAX, TRIGGER_LIMIT_WAIT_MS, TRIGGER_RUNS_MAX,
};
use crate::rejection::Rejection;
use crate::reply::TriggerFired;
use crate::run::{self, Creation, GivenExclusion, NewRun};
use crate::store::StoreError;
use crate::stream::{self, RecordId};
use crate::tables::{
    DefinitionNumber, EventKind, Groups, LiveTrigger, RecordContent, Records, TriggerRecord,
    TriggeredBy, Triggers, Work,
};
use crate::turn::{Abort, Turn, TurnResult};
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Starts a run for each batch of the next records in a partition, and advances the trigger past them. The command
/// names the cursor and the records, so a repeated command has no effect: exactly once without a stored key (design
/// rule 6). Batches that exceed the turn's budget (design rule 13) are left to the next firing, which is due
/// immediately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireTrigger {
    /// Whose trigger.
    pub workflow: WorkflowName,
    /// The revision whose schema was asked.
    pub definition: DefinitionNumber,
    /// The partition that is read.
    pub partition: u32,
    /// Where the trigger's group stands in it.
    pub cursor: RecordId,
    /// The records that lie there, in their order.
    pub batches: Vec<TriggerBatch>,
}

/// A record that is read, with its content.
type Read = (RecordId, Arc<RecordContent>);

/// A firing in progress.
struct Firing<'a> {
    key: &'a TriggerKey,
    command: &'a FireTrigger,
    trigger: Trigger,
    group: group::NumberedGroup,
    record: TriggerRecord,
    /// What the runs that it starts do first, unless they wait for something.
    first_works: Vec<(RunNumber, Work)>,
    runs_count: u32,
    refused_count: u32,
    /// Batches that were carried out.
    batches_count: usize,
}

/// What became of a batch.
enum Carried {
    /// The trigger has read it.
    Done,
    /// It starts no run yet: a concurrency limit or another run prevents it (W84, W85).
    Waits,
}

impl FireTrigger {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<TriggerFired> {
        let key = (namespace.clone(), self.workflow.clone());
        let (record, mut live) = self.expected(turn, &key)?;
        live.waits_until_ms = None;
        let trigger = block(turn, self.definition)?;
        self.check(&trigger)?;
        let number = live.group.ok_or_else(|| self.moved())?;
        let mut firing = Firing {
            key: &key,
            command: self,
            trigger,
            group: group::load(turn, number)?,
            record,
            first_works: Vec::new(),
            runs_count: 0,
            refused_count: 0,
            batches_count: 0,
        };
        let mut records = firing.read(turn)?.into_iter();
        for batch in &self.batches {
            // What is left is fired again, by another command.
            if firing.is_begun() && turn.is_spent() {
                break;
            }
            let records: Vec<Read> = records.by_ref().take(batch.records.len()).collect();
            if let Carried::Waits = firing.carry_out(turn, batch, &records)? {
                let until_ms = turn.now_ms().saturating_add(TRIGGER_LIMIT_WAIT_MS);
                live.waits_until_ms = Some(until_ms);
                break;
            }
            firing.batches_count += 1;
        }
        let is_begun = firing.is_begun();
        let (number, group) = firing.group;
        let stream = group.stream;
        turn.put::<Groups>(&number, group);
        stream::hold_moved(turn, stream)?;
        rearm(turn, &key, &mut live)?;
        let mut record = firing.record;
        record.live = Some(live);
        if is_begun {
            record.last_fired_ms = Some(turn.now_ms());
        }
        turn.put::<Triggers>(&key, record);
        // The runs may append to the trigger's own stream, so they advance when all of its state is stored.
        for (run, work) in firing.first_works {
            run::advance(turn, run, work)?;
        }
        let run_count = firing.runs_count;
        Ok(TriggerFired {
            run_count,
            refused_count: firing.refused_count,
        })
    }

    /// The trigger as the command expects it: live by this revision, with something to fire.
    fn expected(
        &self,
        turn: &mut Turn<'_, '_>,
        key: &TriggerKey,
    ) -> TurnResult<(TriggerRecord, LiveTrigger)> {
        let record = load(turn, key)?;
        let is_named =
            |live: &LiveTrigger| live.definition == self.definition && live.due_ms.is_some();
        let live = record.live.clone().filter(is_named);
        let live = live.ok_or_else(|| self.moved())?;
        Ok((record, live))
    }

    fn moved(&self) -> Rejection {
        Rejection::TriggerFiringStale(self.workflow.clone())
    }

    /// What can be said of the batches without the stream.
    fn check(&self, trigger: &Trigger) -> Result<(), Rejection> {
        if self.batches.is_empty() || self.batches.iter().any(|batch| batch.records.is_empty()) {
            return Err(Rejection::RecordsMissing);
        }
        let record_count: usize = self.batches.iter().map(|batch| batch.records.len()).sum();
        if record_count > READ_RECORDS_MAX {
            return Err(Rejection::too_many("records in a firing", READ_RECORDS_MAX));
        }
        if self.batches.len() > TRIGGER_RUNS_MAX {
            return Err(Rejection::too_many("batches in a firing", TRIGGER_RUNS_MAX));
        }
        let size_max = usize::try_from(trigger.batch_size).unwrap_or(usize::MAX);
        let mut batches = self.batches.iter();
        if batches.any(|batch| batch.records.len() > size_max) {
            return Err(Rejection::too_many("records in a batch", size_max));
        }
        Ok(())
    }

    /// Whether a last batch that is not whole has waited for long enough; one that another record
    /// follows was closed by that one.
    fn is_last_due(&self, trigger: &Trigger, now_ms: u64) -> bool {
        let Some(last) = self.batches.last() else {
            return true;
        };
        let is_whole = last.records.len() as u64 >= u64::from(trigger.batch_size);
        let is_old = last
            .records
            .first()
            .is_some_and(|first| first.id.ms.saturating_add(trigger.batch_timeout_ms) <= now_ms);
        is_whole || is_old || last.refusal.is_some()
    }
}

/// The hops of the record that took the most.
fn hops(records: &[Read]) -> u8 {
    let hops = records.iter().map(|(_, content)| content.hops);
    hops.max().unwrap_or_default()
}

impl Firing<'_> {
    /// Whether a batch was carried out.
    fn is_begun(&self) -> bool {
        self.batches_count > 0
    }

    /// Reads the records that are named, which must lie where the group stands.
    fn read(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Vec<Read>> {
        let command = self.command;
        let (_, group) = &self.group;
        let stream = stream::load(turn, group.stream)?;
        let found = stream.partition(command.partition).copied();
        let (Some(found), Some(own)) = (found, group.partition(command.partition)) else {
            return Err(command.moved().into());
        };
        let front = found.front.unwrap_or(RecordId::END);
        if own.next != command.cursor {
            return Err(command.moved().into());
        }
        let place = (group.stream, command.partition, own.next.max(front));
        let batches = command.batches.iter();
        let named: Vec<RecordId> = batches
            .flat_map(|batch| batch.records.iter().map(|record| record.id))
            .collect();
        let records = read(turn, place, named.len())?;
        if !records.iter().map(|(id, _)| id).eq(&named) {
            return Err(command.moved().into());
        }
        let bytes: u64 = records.iter().map(|(_, content)| content.size()).sum();
        if bytes > READ_BYTES_MAX && records.len() > 1 {
            let (noun, bytes_max) = ("the firing".to_owned(), READ_BYTES_MAX);
            let refusal = Rejection::TooLarge {
                noun,
                bytes,
                bytes_max,
            };
            return Err(refusal.into());
        }
        let last = records.last();
        let is_followed = last.is_some_and(|(_, last)| last.position < found.appended_count);
        if !is_followed && !command.is_last_due(&self.trigger, turn.now_ms()) {
            return Err(Rejection::BatchNotDue.into());
        }
        Ok(records)
    }

    /// Moves the group on behind the records of a batch, and starts its run or gives them to the
    /// dead-letter stream.
    fn carry_out(
        &mut self,
        turn: &mut Turn<'_, '_>,
        batch: &TriggerBatch,
        records: &[Read],
    ) -> TurnResult<Carried> {
        if let Some(refusal) = &batch.refusal {
            self.refuse(turn, records, refusal)?;
            return Ok(Carried::Done);
        }
        if hops(records) > HOPS_MAX {
            let refusal =
                format!("expected the record to have at most {HOPS_MAX} hops, but it has more");
            self.refuse(turn, records, &refusal)?;
            return Ok(Carried::Done);
        }
        let flags = batch.records.iter().map(|record| record.is_json);
        let payloads = records.iter().zip(flags);
        let payloads = payloads.map(|((_, content), is_json)| (&content.payload[..], is_json));
        let input = input(self.trigger.batch_size, payloads);
        match self.start(turn, input, records) {
            Ok(()) => self.pass(records),
            Err(Abort::Rejected(refusal)) if refusal.is_temporary_conflict() => {
                return Ok(Carried::Waits);
            }
            Err(Abort::Rejected(refusal)) if records.len() == 1 || refusal.is_start_conflict() => {
                self.refuse(turn, records, &refusal.to_string())?;
            }
            Err(abort) => return Err(abort),
        }
        Ok(Carried::Done)
    }

    /// Moves the group on behind the records.
    fn pass(&mut self, records: &[Read]) {
        for (id, content) in records {
            let partition = self.command.partition;
            group::pass(&mut self.group.1, partition, *id, content.position);
        }
    }

    fn start(&mut self, turn: &mut Turn<'_, '_>, input: Json, records: &[Read]) -> TurnResult<()> {
        let partition = self.command.partition;
        let hops = hops(records);
        let records: Vec<RecordId> = records.iter().map(|(id, _)| *id).collect();
        let new_run = NewRun {
            namespace: self.key.0.clone(),
            run_id: None,
            definition: self.command.definition,
            input,
            metadata: None,
            idempotency_key: None,
            triggered_by: TriggeredBy::Trigger { first: records[0] },
            parent: None,
            nesting: 0,
            hops,
            trace: None,
            starts_at_ms: None,
            attempt: None,
            exclusion: GivenExclusion::default(),
        };
        let created = run::create(turn, new_run)?;
        self.group.1.acked_count += records.len() as u64;
        self.record.record_count += records.len() as u64;
        let run = match created {
            Creation::Run(run) => run,
            // The run that holds the key stands for the records.
            Creation::Existing(_) => return Ok(()),
        };
        self.record.run_count += 1;
        self.runs_count += 1;
        let kind = EventKind::TriggerStarted { partition, records };
        turn.note_run(run.number, kind)?;
        self.first_works
            .extend(run.first_work.map(|work| (run.number, work)));
        Ok(())
    }

    fn refuse(
        &mut self,
        turn: &mut Turn<'_, '_>,
        records: &[Read],
        reason: &str,
    ) -> Result<(), StoreError> {
        self.pass(records);
        for (id, _) in records {
            let dead = group::DeadRecord {
                partition: self.command.partition,
                id: *id,
                deliveries: 1,
                reason: Some(reason),
            };
            group::move_to_dead_letters(turn, &mut self.group.1, &dead)?;
            self.record.refused_count += 1;
            self.refused_count += 1;
        }
        Ok(())
    }
}

/// The first records of a partition at or behind an id.
fn read(
    turn: &Turn<'_, '_>,
    place: <Records as crate::tables::Table>::Key,
    count: usize,
) -> Result<Vec<Read>, StoreError> {
    let (stream, partition, _) = place;
    let mut records = Vec::with_capacity(count);
    turn.visit_from::<Records>(&(stream, partition), &place, |(_, _, id), content| {
        records.push((id, content));
        if records.len() < count {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(records)
}
