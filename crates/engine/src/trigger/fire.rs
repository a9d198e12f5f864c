//! Firing a trigger (W41).

use super::batch::{TriggerBatch, input};
use super::condition::{Candidate, Verdict};
use super::due::{TriggerKey, block, rearm};
use super::live::find;
use crate::definition::{Trigger, TriggerIndex};
use crate::expression::Meter;
use crate::group;
use crate::ids::{Namespace, RunNumber, WorkflowName};
use crate::json::Json;
use crate::limits::{
    HOPS_MAX, READ_BYTES_MAX, READ_RECORDS_MAX, TRIGGER_LIMIT_WAIT_MS, TRIGGER_RUNS_MAX,
};
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::TriggerFired;
use crate::run::{self, Creation, GivenExclusion, NewRun};
use crate::store::StoreError;
use crate::stream::{self, RecordId};
use crate::tables::{
    DefinitionNumber, EventKind, Groups, RecordContent, Records, TriggerCounts, TriggerRecord,
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
    /// Which of its triggers.
    pub trigger: TriggerIndex,
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
    counts: TriggerCounts,
    /// What the runs that it starts do first, unless they wait for something.
    first_works: Vec<(RunNumber, Work)>,
    runs_count: u32,
    refused_count: u32,
    skipped_count: u32,
    /// Batches that were carried out.
    batches_count: usize,
}

/// What became of a batch.
enum Carried {
    /// The trigger has read it.
    Done,
    /// It starts no run yet: a concurrency limit, another run or a quota prevents it (W84, W85, X39).
    Waits(Wait),
}

/// Why a trigger starts no run yet.
struct Wait {
    /// For how long, in milliseconds.
    length_ms: u64,
    is_over_quota: bool,
}

/// What became of the run of a batch.
enum Begun {
    /// It was started, or is not needed.
    Started,
    /// It cannot be started, for this reason.
    Refused(String),
    /// It is started later.
    Waits(Wait),
}

impl FireTrigger {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<TriggerFired> {
        let key = (namespace.clone(), self.workflow.clone(), self.trigger);
        let record = find(turn, &key)?.ok_or_else(|| self.moved())?;
        let mut live = record.live;
        // It is live by this revision, with something to fire.
        if live.definition != self.definition || live.due_ms.is_none() {
            return Err(self.moved().into());
        }
        live.waits_until_ms = None;
        live.is_over_quota = false;
        let trigger = block(turn, self.definition, self.trigger)?;
        self.check(&trigger)?;
        let number = live.group.ok_or_else(|| self.moved())?;
        let mut firing = Firing {
            key: &key,
            command: self,
            trigger,
            group: group::load(turn, number)?,
            counts: record.counts,
            first_works: Vec::new(),
            runs_count: 0,
            refused_count: 0,
            skipped_count: 0,
            batches_count: 0,
        };
        let mut records = firing.read(turn)?.into_iter();
        for batch in &self.batches {
            // What is left is fired again, by another command.
            if firing.is_begun() && (turn.is_spent() || firing.has_started_most()) {
                break;
            }
            let records: Vec<Read> = records.by_ref().take(batch.records.len()).collect();
            if let Carried::Waits(wait) = firing.carry_out(turn, batch, &records)? {
                let until_ms = turn.now_ms().saturating_add(wait.length_ms);
                live.waits_until_ms = Some(until_ms);
                live.is_over_quota = wait.is_over_quota;
                break;
            }
            firing.batches_count += 1;
        }
        let mut counts = firing.counts;
        if firing.is_begun() {
            counts.last_fired_ms = Some(turn.now_ms());
        }
        let (number, group) = firing.group;
        let stream = group.stream;
        turn.put::<Groups>(&number, group);
        stream::hold_moved(turn, stream)?;
        rearm(turn, &key, &mut live)?;
        turn.put::<Triggers>(&key, TriggerRecord { live, counts });
        // The runs may append to the trigger's own stream, so they advance when all of its state is stored.
        for (run, work) in firing.first_works {
            run::advance(turn, run, work)?;
        }
        Ok(TriggerFired {
            run_count: firing.runs_count,
            refused_count: firing.refused_count,
            skipped_count: firing.skipped_count,
        })
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
        // With a condition, most batches may start no run.
        if trigger.when.is_none() && self.batches.len() > TRIGGER_RUNS_MAX {
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
fn hops(taken: &[(&Read, bool)]) -> u8 {
    let hops = taken.iter().map(|((_, content), _)| content.hops);
    hops.max().unwrap_or_default()
}

impl Firing<'_> {
    /// Whether a batch was carried out.
    fn is_begun(&self) -> bool {
        self.batches_count > 0
    }

    /// Whether it has started as many runs as one firing may.
    fn has_started_most(&self) -> bool {
        self.runs_count as usize >= TRIGGER_RUNS_MAX
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

    /// Starts the run of a batch, without the records that the trigger does not take, and moves the group on behind all
    /// of its records. Those that are refused go to the dead-letter stream.
    fn carry_out(
        &mut self,
        turn: &mut Turn<'_, '_>,
        batch: &TriggerBatch,
        records: &[Read],
    ) -> TurnResult<Carried> {
        let verdicts = self.judge(turn, batch, records);
        let taken = records.iter().zip(&batch.records).zip(&verdicts);
        let taken = taken.filter(|(_, verdict)| **verdict == Verdict::Taken);
        let taken: Vec<(&Read, bool)> = taken
            .map(|((record, batched), _)| (record, batched.is_json))
            .collect();
        let refusal = match self.begin(turn, batch, &taken)? {
            Begun::Started => None,
            Begun::Refused(refusal) => Some(refusal),
            Begun::Waits(wait) => return Ok(Carried::Waits(wait)),
        };
        for ((id, content), verdict) in records.iter().zip(verdicts) {
            group::pass(
                &mut self.group.1,
                self.command.partition,
                *id,
                content.position,
            );
            match (verdict, &refusal) {
                (Verdict::Taken, None) => self.group.1.acked_count += 1,
                (Verdict::Taken, Some(refusal)) => self.refuse(turn, *id, refusal)?,
                (Verdict::Failed(reason), _) => self.refuse(turn, *id, &reason)?,
                (Verdict::Skipped, _) => {
                    self.group.1.acked_count += 1;
                    self.counts.skipped_count += 1;
                    self.skipped_count += 1;
                }
            }
        }
        Ok(Carried::Done)
    }

    /// Which records of a batch the trigger takes. The conditions of a batch together cost at most what one evaluation
    /// may cost; the driver cuts batches accordingly.
    fn judge(
        &self,
        turn: &mut Turn<'_, '_>,
        batch: &TriggerBatch,
        records: &[Read],
    ) -> Vec<Verdict> {
        let mut meter = Meter::default();
        let verdicts = records.iter().zip(&batch.records);
        let verdicts = verdicts.map(|((id, content), batched)| {
            let candidate = Candidate {
                id: *id,
                partition: self.command.partition,
                content,
                is_json: batched.is_json,
            };
            candidate.judge(&self.trigger, &mut meter)
        });
        let verdicts = verdicts.collect();
        turn.spend_units(meter.spent());
        verdicts
    }

    /// Starts a run for the records that are taken, each with whether it is JSON.
    fn begin(
        &mut self,
        turn: &mut Turn<'_, '_>,
        batch: &TriggerBatch,
        taken: &[(&Read, bool)],
    ) -> TurnResult<Begun> {
        if taken.is_empty() {
            return Ok(Begun::Started);
        }
        if let Some(refusal) = &batch.refusal {
            return Ok(Begun::Refused(refusal.clone()));
        }
        if hops(taken) > HOPS_MAX {
            return Ok(Begun::Refused(format!(
                "expected the record to have at most {HOPS_MAX} hops, but it has more"
            )));
        }
        if let Some(wait) = self.wait_for_quota(turn)? {
            return Ok(Begun::Waits(wait));
        }
        let payloads = taken
            .iter()
            .map(|((_, content), is_json)| (&content.payload[..], *is_json));
        let input = input(self.trigger.batch_size, payloads);
        match self.start(turn, input, taken) {
            Ok(()) => Ok(Begun::Started),
            Err(Abort::Rejected(refusal)) if refusal.is_temporary_conflict() => {
                Ok(Begun::Waits(Wait {
                    length_ms: TRIGGER_LIMIT_WAIT_MS,
                    is_over_quota: false,
                }))
            }
            Err(Abort::Rejected(refusal)) if taken.len() == 1 || refusal.is_start_conflict() => {
                Ok(Begun::Refused(refusal.to_string()))
            }
            Err(abort) => Err(abort),
        }
    }

    /// How long the trigger waits if a quota does not allow another run. A count may have room at any time.
    fn wait_for_quota(&self, turn: &mut Turn<'_, '_>) -> TurnResult<Option<Wait>> {
        // The runs that the firing has started are counted at the end of the turn.
        let needs = [
            (QuotaDimension::StartsPerMinute, 1),
            (QuotaDimension::OpenRuns, u64::from(self.runs_count) + 1),
        ];
        let exceeded = quota::refusal(turn, &self.key.0, &needs)?;
        Ok(exceeded.map(|exceeded| Wait {
            length_ms: exceeded.retry_after_ms.unwrap_or(TRIGGER_LIMIT_WAIT_MS),
            is_over_quota: true,
        }))
    }

    fn start(
        &mut self,
        turn: &mut Turn<'_, '_>,
        input: Json,
        taken: &[(&Read, bool)],
    ) -> TurnResult<()> {
        let partition = self.command.partition;
        let (trigger, hops) = (self.command.trigger, hops(taken));
        let records: Vec<RecordId> = taken.iter().map(|((id, _), _)| *id).collect();
        let new_run = NewRun {
            namespace: self.key.0.clone(),
            run_id: None,
            definition: self.command.definition,
            input,
            metadata: None,
            idempotency_key: None,
            triggered_by: TriggeredBy::Trigger {
                trigger,
                first: records[0],
            },
            parent: None,
            nesting: 0,
            hops,
            trace: None,
            starts_at_ms: None,
            attempt: None,
            exclusion: GivenExclusion::default(),
            taken_over: None,
        };
        let created = run::create(turn, new_run)?;
        let run = match created {
            Creation::Run(run) => run,
            // The run that holds the key stands for the records.
            Creation::Existing(_) => return Ok(()),
        };
        quota::spend(turn, &self.key.0, (QuotaDimension::StartsPerMinute, 1))?;
        self.counts.run_count += 1;
        self.counts.record_count += records.len() as u64;
        self.runs_count += 1;
        let kind = EventKind::TriggerStarted {
            trigger,
            partition,
            records,
        };
        turn.note_run(run.number, kind)?;
        self.first_works
            .extend(run.first_work.map(|work| (run.number, work)));
        Ok(())
    }

    /// Gives a record to the dead-letter stream of the group.
    fn refuse(
        &mut self,
        turn: &mut Turn<'_, '_>,
        id: RecordId,
        reason: &str,
    ) -> Result<(), StoreError> {
        let dead = group::DeadRecord {
            partition: self.command.partition,
            id,
            deliveries: 1,
            reason: Some(reason),
        };
        group::move_to_dead_letters(turn, &mut self.group.1, &dead)?;
        self.counts.refused_count += 1;
        self.refused_count += 1;
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
