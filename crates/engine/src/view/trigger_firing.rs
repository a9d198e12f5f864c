//! Builds the command that fires a trigger from the records that it has to fire (W41, design rule 1).

use crate::definition::{Trigger, TriggerIndex};
use crate::expression::Meter;
use crate::ids::{Namespace, WorkflowName};
use crate::json::Json;
use crate::limits::{
    EXPRESSION_COST_MAX, EXPRESSION_UNIT_BYTES, HOPS_MAX, PAYLOAD_BYTES_MAX, TRIGGER_RUNS_MAX,
    TURN_READ_BYTES_MAX,
};
use crate::stream::RecordId;
use crate::tables::{DefinitionNumber, RecordContent};
use crate::trigger::{self, BatchedRecord, FireTrigger, TriggerBatch, Verdict, input};

/// Records of one partition that a trigger has to fire now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TriggerFiring {
    /// Where the workflow is.
    pub namespace: Namespace,
    /// Whose trigger.
    pub workflow: WorkflowName,
    /// The revision that is live.
    pub definition: DefinitionNumber,
    /// Which of its triggers.
    pub index: TriggerIndex,
    /// Its input schema (W4): what [`InputJudge::refusal`] asks.
    pub schema: Option<String>,
    /// What it says of the trigger.
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
    /// What it contains.
    pub content: RecordContent,
}

/// Checks that the engine never makes itself, because libraries' results change with their versions (design rule 1).
pub trait InputJudge {
    /// Whether a payload is JSON, nested no deeper than the edge allows.
    fn is_json(&self, payload: &[u8]) -> bool;

    /// Why the workflow's schema refuses an input; `None` when it does not, or there is no schema.
    fn refusal(&self, input: &Json) -> Option<String>;
}

/// A record with what its payload is, and what the trigger's condition says of it.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    record: BatchedRecord,
    payload: &'a [u8],
    /// Whether it has no other record in its batch: the engine refuses it.
    is_alone: bool,
    /// Whether the condition is true.
    is_taken: bool,
    /// What the condition costs, in units.
    cost: u32,
}

/// A batch that is cut, and whether it starts a run or is refused.
type Cut = (TriggerBatch, bool);

/// What the conditions of one firing cost together before it ends, in units: as much as a turn may cost.
const FIRING_COST_MAX: usize = TURN_READ_BYTES_MAX / EXPRESSION_UNIT_BYTES;

impl TriggerFiring {
    /// The command that fires the batches, with the judge's results; `None` while the only batch may grow.
    ///
    /// Records for which the trigger's condition is not true count for the size of their batch, but are not part of its
    /// input. A batch that the schema rejects is split: records that it rejects individually are refused, and the others
    /// between them form separate batches. A batch that may grow is not judged, because later records may satisfy the
    /// schema.
    #[must_use]
    pub fn command(&self, judge: &impl InputJudge) -> Option<FireTrigger> {
        let (candidates, has_more) = self.candidates(judge);
        let cutter = Cutter {
            firing: self,
            has_more,
        };
        let batches = cutter.batches(&candidates, judge);
        (!batches.is_empty()).then(|| FireTrigger {
            workflow: self.workflow.clone(),
            definition: self.definition,
            trigger: self.index,
            partition: self.partition,
            cursor: self.cursor,
            batches,
        })
    }

    /// The records, as far as the cost of their conditions allows, and whether others lie behind them.
    fn candidates(&self, judge: &impl InputJudge) -> (Vec<Candidate<'_>>, bool) {
        let mut candidates = Vec::with_capacity(self.records.len());
        let mut cost = 0;
        for record in &self.records {
            if cost > FIRING_COST_MAX {
                return (candidates, true);
            }
            let candidate = self.candidate(record, judge);
            cost += usize::try_from(candidate.cost).unwrap_or(usize::MAX);
            candidates.push(candidate);
        }
        (candidates, self.has_more)
    }

    fn candidate<'r>(&self, record: &'r ReadRecord, judge: &impl InputJudge) -> Candidate<'r> {
        let content = &record.content;
        let is_json = judge.is_json(&content.payload);
        let mut meter = Meter::default();
        let conditioned = trigger::Candidate {
            id: record.id,
            partition: self.partition,
            content,
            is_json,
        };
        let verdict = conditioned.judge(&self.trigger, &mut meter);
        Candidate {
            record: BatchedRecord {
                id: record.id,
                is_json,
            },
            payload: &content.payload,
            is_alone: content.hops > HOPS_MAX,
            is_taken: verdict == Verdict::Taken,
            cost: meter.spent(),
        }
    }
}

/// Cuts the records of a firing into batches.
struct Cutter<'a> {
    firing: &'a TriggerFiring,
    /// Whether other records lie behind them.
    has_more: bool,
}

impl Cutter<'_> {
    fn batches(&self, candidates: &[Candidate<'_>], judge: &impl InputJudge) -> Vec<TriggerBatch> {
        let mut whole = self.cut(candidates);
        let is_only = whole.len() == 1;
        whole.pop_if(|last| self.may_grow(last, is_only));
        let mut cuts = Vec::new();
        let is_full = |cuts: &[Cut]| cuts.iter().filter(|cut| cut.1).count() >= TRIGGER_RUNS_MAX;
        for batch in whole {
            self.judge(batch, judge, &mut cuts);
            if is_full(&cuts) {
                break;
            }
        }
        // The engine stops after the most runs.
        let mut runs_count = 0;
        let within = |(batch, is_run): Cut| {
            runs_count += usize::from(is_run);
            (runs_count <= TRIGGER_RUNS_MAX).then_some(batch)
        };
        let mut batches = cuts.into_iter().map_while(within).collect();
        self.leave_growing(&mut batches, candidates.len());
        batches
    }

    fn batch_size(&self) -> u32 {
        self.firing.trigger.batch_size
    }

    /// Batches as large as `batch_size`, the bound of an input and the cost of an evaluation allow; a record that the
    /// engine refuses is one.
    fn cut<'c, 'a>(&self, candidates: &'c [Candidate<'a>]) -> Vec<&'c [Candidate<'a>]> {
        let size = usize::try_from(self.batch_size()).unwrap_or(usize::MAX);
        let mut batches = Vec::new();
        let (mut begin, mut bytes, mut cost) = (0, 0, 0);
        for (position, candidate) in candidates.iter().enumerate() {
            // With a bracket or comma, and one bracket at the end.
            let own_bytes = match candidate.is_taken {
                true => input(1, [candidate.content()]).as_str().len() + 1,
                false => 0,
            };
            let is_over = bytes + own_bytes + 1 > PAYLOAD_BYTES_MAX
                || cost + candidate.cost > EXPRESSION_COST_MAX;
            let is_apart = candidate.is_alone || (position > begin && candidates[begin].is_alone);
            if position > begin && (is_over || is_apart || position - begin == size) {
                batches.push(&candidates[begin..position]);
                (begin, bytes, cost) = (position, 0, 0);
            }
            bytes += own_bytes;
            cost += candidate.cost;
        }
        batches.push(&candidates[begin..]);
        batches
    }

    fn judge(&self, batch: &[Candidate<'_>], judge: &impl InputJudge, out: &mut Vec<Cut>) {
        let refusal = self.refusal(batch, judge);
        if refusal.is_none() || batch.len() == 1 {
            out.push(of(batch, refusal));
            return;
        }
        let alone: Vec<Option<String>> = batch
            .chunks(1)
            .map(|one| self.refusal(one, judge))
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
    fn judge_rest(&self, batch: &[Candidate<'_>], judge: &impl InputJudge, out: &mut Vec<Cut>) {
        if !batch.is_empty() {
            out.push(of(batch, self.refusal(batch, judge)));
        }
    }

    /// Why the schema refuses the input of a batch; `None` if the batch has no input.
    fn refusal(&self, batch: &[Candidate<'_>], judge: &impl InputJudge) -> Option<String> {
        let mut taken = batch.iter().filter(|candidate| candidate.is_taken);
        let payloads = taken.clone().map(Candidate::content);
        taken.next()?;
        judge.refusal(&input(self.batch_size(), payloads))
    }

    /// Whether the last batch that was cut may have more records, if one waits.
    fn may_grow(&self, last: &[Candidate<'_>], is_only: bool) -> bool {
        let is_whole = last.len() as u64 >= u64::from(self.batch_size());
        // As large as one read.
        let is_closed = self.has_more && is_only;
        !(is_whole || is_closed || self.has_waited(last.first().map(|first| first.record)))
    }

    /// Leaves out the last batch if it may still grow: the rest of one that was taken apart, which the
    /// engine would refuse.
    fn leave_growing(&self, batches: &mut Vec<TriggerBatch>, candidate_count: usize) {
        let named: usize = batches.iter().map(|batch| batch.records.len()).sum();
        let is_closed = named < candidate_count || (self.has_more && batches.len() == 1);
        let may_grow = |last: &mut TriggerBatch| {
            let is_whole = last.records.len() as u64 >= u64::from(self.batch_size());
            let has_waited = self.has_waited(last.records.first().copied());
            !(is_whole || has_waited || is_closed || last.refusal.is_some())
        };
        batches.pop_if(may_grow);
    }

    /// Whether a batch with this first record has waited for its time, and nothing follows it.
    fn has_waited(&self, first: Option<BatchedRecord>) -> bool {
        let flush_ms = first.map_or(0, |first| {
            let timeout_ms = self.firing.trigger.batch_timeout_ms;
            first.id.ms.saturating_add(timeout_ms)
        });
        flush_ms <= self.firing.now_ms && !self.has_more
    }
}

impl<'a> Candidate<'a> {
    fn content(&self) -> (&'a [u8], bool) {
        (self.payload, self.record.is_json)
    }
}

fn of(batch: &[Candidate<'_>], refusal: Option<String>) -> Cut {
    let is_run = batch.iter().any(|candidate| candidate.is_taken);
    let records = batch.iter().map(|candidate| candidate.record).collect();
    (TriggerBatch { records, refusal }, is_run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::Bytes;
    use crate::definition::{Expression, GroupMode, Variable};
    use crate::expression::{CompiledExpression, Constant, Function, Node};
    use crate::ids::{GroupName, StreamName};
    use std::collections::BTreeMap;

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
            index: TriggerIndex(0),
            schema: None,
            trigger: Trigger {
                stream: StreamName::new("orders").expect("a name"),
                namespace: None,
                consumer_group: GroupName::new("work").expect("a name"),
                consumption: GroupMode::Shared,
                batch_size,
                batch_timeout_ms: 50,
                when: None,
            },
            partition: 0,
            cursor: RecordId::START,
            records: (0..)
                .map(id)
                .zip(payloads)
                .map(|(id, payload)| ReadRecord {
                    id,
                    content: content(payload),
                })
                .collect(),
            has_more: false,
            now_ms: 149,
        }
    }

    fn content(payload: Bytes) -> RecordContent {
        RecordContent {
            payload,
            headers: BTreeMap::new(),
            key: None,
            position: 1,
            hops: 0,
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
            .map(|record| (&record.content.payload[..], false));
        assert!(input(9, inputs).as_str().len() <= PAYLOAD_BYTES_MAX);
    }

    #[test]
    fn a_record_that_took_too_many_hops_is_a_batch_of_one() {
        let mut firing = firing(4, &["a", "b", "c", "d"]);
        firing.records[1].content.hops = HOPS_MAX + 1;
        assert_eq!(sizes(&firing, "none"), ["1", "1"]);
        firing.now_ms = 150;
        assert_eq!(sizes(&firing, "none"), ["1", "1", "2"]);
        firing.records[1].content.hops = HOPS_MAX;
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

    /// A condition that is true for a payload.
    fn payload_is(payload: &str) -> Expression {
        let field = Node::Select {
            operand: Box::new(Node::Variable(0)),
            field: "payload".into(),
        };
        let payload = Node::Constant(Constant::String(payload.into()));
        let root = Node::Call {
            function: Function::Equal,
            operands: vec![field, payload],
        };
        Expression {
            text: "record.payload == …".to_owned(),
            variables: vec![Variable::Record],
            compiled: CompiledExpression { root },
        }
    }

    #[test]
    fn records_that_start_no_run_do_not_count_as_runs() {
        let payloads: Vec<&str> = (0..200)
            .map(|at| if at < 150 { "a" } else { "b" })
            .collect();
        let mut firing = firing(1, &payloads);
        firing.trigger.when = Some(payload_is("b"));
        assert_eq!(sizes(&firing, "none").len(), 150 + TRIGGER_RUNS_MAX);
        firing.trigger.when = Some(payload_is("c"));
        assert_eq!(sizes(&firing, "a").len(), 200, "the schema is not asked");
    }

    #[test]
    fn a_batch_ends_before_its_conditions_cost_more_than_one_may() {
        let large = &*"x".repeat(1 << 20);
        let mut firing = firing(9, &[large; 8]);
        firing.trigger.when = Some(payload_is("y"));
        firing.now_ms = 150;
        assert_eq!(sizes(&firing, "none"), ["6", "2"]);
        firing = self::firing(9, &[large; 40]);
        firing.trigger.when = Some(payload_is("y"));
        assert_eq!(
            sizes(&firing, "none"),
            ["6", "6"],
            "as much as a turn may cost"
        );
    }
}
