//! Firing a schedule (W40).

use super::due::{ScheduleKey, arm, block, disarm, expected};
use crate::ids::{Namespace, RunId, WorkflowName};
use crate::json::Json;
use crate::quota::{self, QuotaDimension};
use crate::rejection::Rejection;
use crate::reply::ScheduleFired;
use crate::run::{self, Creation, GivenExclusion, NewRun};
use crate::tables::{
    DefinitionNumber, EventKind, FiringRecord, LiveSchedule, NextFiring, ScheduleRecord, Schedules,
    TriggeredBy,
};
use crate::turn::{Abort, Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Fires a schedule once and sets its next firing. The command names the firing, so a repeated command has no effect:
/// exactly once without a stored key (design rule 6).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FireSchedule {
    /// Whose schedule.
    pub workflow: WorkflowName,
    /// The revision whose next firing was computed.
    pub definition: DefinitionNumber,
    /// The firing, in milliseconds.
    pub expected_ms: u64,
    /// The firing after it, in milliseconds; `None` for never again.
    pub next_ms: Option<u64>,
}

/// What a firing needs of the quotas; without it, it is skipped (X39).
const NEEDS: [quota::Need; 2] = [
    (QuotaDimension::StartsPerMinute, 1),
    (QuotaDimension::OpenRuns, 1),
];

impl FireSchedule {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<ScheduleFired> {
        let key = (namespace.clone(), self.workflow.clone());
        let (mut record, live) = expected(turn, &key, self.definition, self.expected_ms)?;
        if !matches!(live.next, NextFiring::At { .. }) {
            return Err(Rejection::FiringStale(self.workflow.clone()).into());
        }
        if self
            .next_ms
            .is_some_and(|next_ms| next_ms <= self.expected_ms)
        {
            return Err(Rejection::FiringOutOfOrder.into());
        }
        disarm(turn, &key, &live);
        let live = LiveSchedule {
            next: NextFiring::at(self.next_ms),
            ..live
        };
        arm(turn, &key, &live);
        record.live = Some(live);
        let schedule = block(turn, &live)?;
        let is_over_quota = quota::refusal(turn, namespace, &NEEDS)?.is_some();
        if is_over_quota || record.running_count() >= schedule.max_concurrent {
            self.skip(turn, &key, record);
            return Ok(ScheduleFired { run_id: None });
        }
        let started = self.start(turn, &key, record.clone(), schedule.input)?;
        if started.is_none() {
            self.skip(turn, &key, record);
        }
        Ok(ScheduleFired { run_id: started })
    }

    /// Counts a firing that starts no run.
    fn skip(&self, turn: &mut Turn<'_, '_>, key: &ScheduleKey, mut record: ScheduleRecord) {
        record.skipped_count += 1;
        record.last_skipped_ms = Some(self.expected_ms);
        turn.put::<Schedules>(key, record);
    }

    /// Starts the firing's run in the turn that advances the schedule, so that it is started exactly once. None is started
    /// that a concurrency limit or another run rejects (W84, W85).
    fn start(
        &self,
        turn: &mut Turn<'_, '_>,
        key: &ScheduleKey,
        mut record: ScheduleRecord,
        input: String,
    ) -> TurnResult<Option<RunId>> {
        let firing_ms = self.expected_ms;
        let new_run = NewRun {
            namespace: key.0.clone(),
            run_id: None,
            definition: self.definition,
            input: Json::from_checked(input),
            metadata: None,
            idempotency_key: None,
            triggered_by: TriggeredBy::Schedule { firing_ms },
            parent: None,
            nesting: 0,
            hops: 0,
            trace: None,
            starts_at_ms: None,
            attempt: None,
            exclusion: GivenExclusion::default(),
            taken_over: None,
        };
        let started = match run::create(turn, new_run) {
            Ok(Creation::Run(started)) => started,
            Ok(Creation::Existing(_)) => panic!("a schedule uses no run that exists already"),
            Err(Abort::Rejected(rejection)) if rejection.is_start_conflict() => return Ok(None),
            Err(abort) => return Err(abort),
        };
        quota::spend(turn, &key.0, NEEDS[0])?;
        let (run, run_id) = (started.number, started.id);
        let kind = EventKind::ScheduleStarted { firing_ms };
        turn.note_run(run, kind)?;
        record.open_count += 1;
        record.fired_count += 1;
        record.last_fired = Some(FiringRecord {
            firing_ms,
            fired_at_ms: turn.now_ms(),
            run,
        });
        // Stored before the run advances: the run may end in this very turn, which updates the count.
        turn.put::<Schedules>(key, record);
        if let Some(work) = started.first_work {
            run::advance(turn, run, work)?;
        }
        Ok(Some(run_id))
    }
}
