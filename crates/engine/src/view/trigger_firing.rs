//! Builds the command that fires a trigger from the records that it has to fire (W41, design rule 1).

use crate::bytes::Bytes;
use crate::definition::Trigger;
use crate::ids::{Namespace, WorkflowName};
use crate::json::Json;
use crate::limits::{HOPS_MAX, PAYLOAD_BYTES_MAX, TRIGGER_RUNS_MAX};
use crate::stream::RecordId;
use crate::tables::DefinitionNumber;
use crate::trigger::{BatchedRecord, FireTrigger, TriggerBatch, input};

/// Records of one partition that a trigger has to fire now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFiring {
    /// Where the workflow is.
    pub namespace: Namespace,
    /// Whose trigger.
    pub workflow: WorkflowName,
    /// The revision that is live.
    pub definition: DefinitionNumber,
    /// Its input schema (W4): what [`InputJudge::refusal`] asks.
    pub schema: Option<String>,
    /// What it says of its trigger.
    pub trigger: Trigger,
    /// The partition of the stream.
    pub partition: u32,
    /// Where the trigger's group stands in it.
    pub cursor: RecordId,
    /// The records that lie there, in their order: at least one.
    pub records: Vec<ReadRecord>,
    /// Whether others lie behind them.
    pub has_more: bool,
    /// When it was looked, in milliseconds.
    pub now_ms: u64,
}

/// A record that a trigger may fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadRecord {
    /// Its id.
    pub id: RecordId,
    /// Its payload.
    pub payload: Bytes,
    /// How many runs led to it (W62).
    pub hops: u8,
}

/// Checks that the engine never makes itself, because libraries' results change with their versions (design rule 1).
pub trait InputJudge {
    /// Whether a payload is JSON, nested no deeper than the edge allows.
    fn is_json(&self, payload: &[u8]) -> bool;

    /// Why the workflow's schema refuses an input; `None` when it does not, or there is no schema.
    fn refusal(&self, input: &Json) -> Option<String>;
}

/// A record with what its payload is.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    record: BatchedRecord,
    payload: &'a [u8],
    /// Whether it has no other record in its batch: the engine refuses it.
    is_alone: bool,
}

impl TriggerFiring {
    /// The command that fires the batches, with the judge's results; `None` while the only batch may grow.
    ///
    /// A batch that the schema rejects is split: records that it rejects individually are refused, and the others
    /// between them form separate batches. A batch that may grow is not judged, because later records may satisfy the
    /// schema.
    #[must_use]
    pub fn command(&self, judge: &impl InputJudge) -> Option<FireTrigger> {
        let candidates: Vec<Candidate<'_>> = self
            .records
            .iter()
            .map(|record| Candidate {
                record: BatchedRecord {
                    id: record.id,
                    is_json: judge.is_json(&record.payload),
                },
                payload: &record.payload,
                is_alone: record.hops > HOPS_MAX,
            })
            .collect();
        let mut whole = self.cut(&candidates);
        let is_only = whole.len() == 1;
        whole.pop_if(|last| self.may_grow(last, is_only));
        let mut batches = Vec::new();
        for batch in whole {
            self.judge(batch, judge, &mut batches);
            if batches.len() >= TRIGGER_RUNS_MAX {
                break;
            }
        }
        batches.truncate(TRIGGER_RUNS_MAX);
        self.leave_growing(&mut batches);
        (!batches.is_empty()).then(|| FireTrigger {
            workflow: self.workflow.clone(),
            definition: self.definition,
            partition: self.partition,
            cursor: self.cursor,
            batches,
        })
    }

    /// Batches as large as `batch_size` and the bound of an input allow; a record that the engine refuses is one.
    fn cut<'c, 'a>(&self, candidates: &'c [Candidate<'a>]) -> Vec<&'c [Candidate<'a>]> {
        let size = usize::try_from(self.trigger.batch_size).unwrap_or(usize::MAX);
        let mut batches = Vec::new();
        let (mut begin, mut bytes) = (0, 0);
        for (position, candidate) in candidates.iter().enumerate() {
            // With a bracket or comma, and one bracket at the end.
            let own_bytes = input(1, [candidate.content()]).as_str().len() + 1;
            let is_over = bytes + own_bytes + 1 > PAYLOAD_BYTES_MAX;
            let is_apart = candidate.is_alone || (position > begin && candidates[begin].is_alone);
            if position > begin && (is_over || is_apart || position - begin == size) {
                batches.push(&candidates[begin..position]);
                (begin, bytes) = (position, 0);
            }
            bytes += own_bytes;
        }
        batches.push(&candidates[begin..]);
        batches
    }

    fn judge(&self, batch: &[Candidate<'_>], judge: &impl InputJudge, out: &mut Vec<TriggerBatch>) {
        let refusal = judge.refusal(&self.input(batch));
        if refusal.is_none() || batch.len() == 1 {
            out.push(of(batch, refusal));
            return;
        }
        let alone: Vec<Option<String>> = batch
            .chunks(1)
            .map(|one| judge.refusal(&self.input(one)))
            .collect();
        if alone.iter().all(Option::is_none) {
            out.push(of(batch, refusal));
            return;
        }
        let mut begin = 0;
        for (position, refusal) in alone.into_iter().enumerate() {
            if refusal.is_some() {
                self.judge_rest(&batch[begin..position], judge, out);
                out.push(of(&batch[position..=position], refusal));
                begin = position + 1;
            }
        }
        self.judge_rest(&batch[begin..], judge, out);
    }

    /// Those between two records that are refused.
    fn judge_rest(
        &self,
        batch: &[Candidate<'_>],
        judge: &impl InputJudge,
        out: &mut Vec<TriggerBatch>,
    ) {
        if !batch.is_empty() {
            out.push(of(batch, judge.refusal(&self.input(batch))));
        }
    }

    /// Whether the last batch that was cut may have more records, if one waits.
    fn may_grow(&self, last: &[Candidate<'_>], is_only: bool) -> bool {
        let is_whole = last.len() as u64 >= u64::from(self.trigger.batch_size);
        // As large as one read.
        let is_closed = self.has_more && is_only;
        !(is_whole || is_closed || self.has_waited(last.first().map(|first| first.record)))
    }

    /// Leaves out the last batch if it may still grow: the rest of one that was taken apart, which the
    /// engine would refuse.
    fn leave_growing(&self, batches: &mut Vec<TriggerBatch>) {
        let named: usize = batches.iter().map(|batch| batch.records.len()).sum();
        let is_closed = named < self.records.len() || (self.has_more && batches.len() == 1);
        let may_grow = |last: &mut TriggerBatch| {
            let is_whole = last.records.len() as u64 >= u64::from(self.trigger.batch_size);
            let has_waited = self.has_waited(last.records.first().copied());
            !(is_whole || has_waited || is_closed || last.refusal.is_some())
        };
        batches.pop_if(may_grow);
    }

    /// Whether a batch with this first record has waited for its time, and nothing follows it.
    fn has_waited(&self, first: Option<BatchedRecord>) -> bool {
        let flush_ms = first.map_or(0, |first| {
            first.id.ms.saturating_add(self.trigger.batch_timeout_ms)
        });
        flush_ms <= self.now_ms && !self.has_more
    }

    fn input(&self, batch: &[Candidate<'_>]) -> Json {
        let payloads = batch.iter().map(Candidate::content);
        input(self.trigger.batch_size, payloads)
    }
}

impl<'a> Candidate<'a> {
    fn content(&self) -> (&'a [u8], bool) {
        (self.payload, self.record.is_json)
    }
}

fn of(batch: &[Candidate<'_>], refusal: Option<String>) -> TriggerBatch {
    TriggerBatch {
        records: batch.iter().map(|candidate| candidate.record).collect(),
        refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::GroupMode;
    use crate::ids::{GroupName, StreamName};

    /// Refuses inputs that hold a text.
    struct Refuses(&'static str);

    impl InputJudge for Refuses {
        fn is_json(&self, _: &[u8]) -> bool {
            false
        }

        fn refusal(&self, input: &Json) -> Option<String> {
            input.as_str().contains(self.0).then(|| "no".to_owned())
        }
    }

    /// Refuses inputs of fewer than three records.
    struct AsksForThree;

    impl InputJudge for AsksForThree {
        fn is_json(&self, _: &[u8]) -> bool {
            false
        }

        fn refusal(&self, input: &Json) -> Option<String> {
            let is_short = input.as_str().matches(',').count() < 2;
            is_short.then(|| "no".to_owned())
        }
    }

    fn firing(batch_size: u32, payloads: &[&str]) -> TriggerFiring {
        let id = |seq| RecordId { ms: 100, seq };
        let payloads = payloads.iter().map(|text| Bytes::from(*text));
        TriggerFiring {
            namespace: Namespace::default_namespace(),
            workflow: WorkflowName::new("order").expect("a name"),
            definition: DefinitionNumber(1),
            schema: None,
            trigger: Trigger {
                stream: StreamName::new("orders").expect("a name"),
                namespace: None,
                consumer_group: GroupName::new("work").expect("a name"),
                consumption: GroupMode::Shared,
                batch_size,
                batch_timeout_ms: 50,
            },
            partition: 0,
            cursor: RecordId::START,
            records: (0..)
                .map(id)
                .zip(payloads)
                .map(|(id, payload)| ReadRecord {
                    id,
                    payload,
                    hops: 0,
                })
                .collect(),
            has_more: false,
            now_ms: 149,
        }
    }

    /// The sizes of the batches, with a mark at those that are refused.
    fn sizes(firing: &TriggerFiring, refused: &'static str) -> Vec<String> {
        sizes_by(firing, &Refuses(refused))
    }

    fn sizes_by(firing: &TriggerFiring, judge: &impl InputJudge) -> Vec<String> {
        let command = firing.command(judge);
        let batches = command.map_or_else(Vec::new, |command| command.batches);
        let size = |batch: &TriggerBatch| {
            let mark = if batch.refusal.is_some() { "!" } else { "" };
            format!("{}{mark}", batch.records.len())
        };
        batches.iter().map(size).collect()
    }

    #[test]
    fn a_firing_starts_no_more_runs_than_a_turn_may() {
        let firing = firing(1, &["x"; TRIGGER_RUNS_MAX + 8]);
        assert_eq!(sizes(&firing, "none").len(), TRIGGER_RUNS_MAX);
    }

    #[test]
    fn a_last_batch_that_may_grow_is_left_out() {
        let mut firing = firing(2, &["a", "b", "c"]);
        assert_eq!(sizes(&firing, "none"), ["2"]);
        firing.now_ms = 150;
        assert_eq!(sizes(&firing, "none"), ["2", "1"]);
        firing.has_more = true;
        assert_eq!(sizes(&firing, "none"), ["2"]);
        firing.records.truncate(1);
        assert_eq!(sizes(&firing, "none"), ["1"], "closed by what lies behind");
        (firing.has_more, firing.now_ms) = (false, 149);
        assert!(sizes(&firing, "none").is_empty());
    }

    #[test]
    fn a_batch_ends_before_its_input_is_too_large() {
        let half = "x".repeat(PAYLOAD_BYTES_MAX / 2 - 4);
        let mut firing = firing(9, &[&half, &half, &half]);
        firing.now_ms = 150;
        assert_eq!(sizes(&firing, "none"), ["2", "1"]);
        let inputs = firing.records[..2]
            .iter()
            .map(|record| (&record.payload[..], false));
        assert!(input(9, inputs).as_str().len() <= PAYLOAD_BYTES_MAX);
    }

    #[test]
    fn a_record_that_took_too_many_hops_is_a_batch_of_one() {
        let mut firing = firing(4, &["a", "b", "c", "d"]);
        firing.records[1].hops = HOPS_MAX + 1;
        assert_eq!(sizes(&firing, "none"), ["1", "1"]);
        firing.now_ms = 150;
        assert_eq!(sizes(&firing, "none"), ["1", "1", "2"]);
        firing.records[1].hops = HOPS_MAX;
        assert_eq!(sizes(&firing, "none"), ["4"]);
    }

    #[test]
    fn records_that_are_refused_alone_are_taken_out_of_their_batch() {
        let mut firing = firing(4, &["a", "bad", "c", "d"]);
        assert_eq!(sizes(&firing, "bad"), ["1", "1!"], "the last two may grow");
        firing.now_ms = 150;
        assert_eq!(sizes(&firing, "bad"), ["1", "1!", "2"]);
        assert_eq!(sizes(&firing, "c\",\"d"), ["4!"], "refused only together");
    }

    #[test]
    fn a_batch_that_may_grow_is_not_refused_for_what_it_lacks() {
        let mut firing = firing(5, &["x"; 7]);
        assert_eq!(sizes_by(&firing, &AsksForThree), ["5"]);
        firing.now_ms = 150;
        assert_eq!(sizes_by(&firing, &AsksForThree), ["5", "1!", "1!"]);
    }
}
