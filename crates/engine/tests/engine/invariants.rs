//! Invariants of the tables, checked after every entry.

mod approvals;
mod concurrency;
mod credentials;
mod dead_letters;
mod exclusion;
mod groups;
mod infos;
mod keys;
mod namespaces;
mod plans;
mod quotas;
mod resumable;
mod retention;
mod run_indexes;
mod schedules;
mod scopes;
mod signals;
mod streams;
mod timeouts;
mod traces;
mod triggers;
mod trimming;
mod usages;
mod visits;
mod workers;
mod workflows;

use flotilla_engine::CommandScope;
use flotilla_engine::ids::{ActionName, ActionRunNumber, Namespace, RunNumber, WorkerNumber};
use flotilla_engine::limits::{HISTORY_EVENTS_MAX, HISTORY_HEAD_EVENTS};
use flotilla_engine::rows::{
    self, ActionRunOwner, ActionRunRecord, ActionRunStatus, ActionRuns, ActionRunsByAction,
    Activation, ActivationState, Activations, Cluster, ClusterRecord, Definitions, History, Key,
    LabelQueues, LabelSet, LeasePlace, PayloadRef, Payloads, PendingWorks, PlanWait, Ready,
    ReadyActionRecord, ReadyActions, RequestAges, RequestUsage, RequestUsages, Requests, RunNames,
    RunRecord, RunStatus, Runs, SchemaChecks, StepResults, StoredPayload, Table, TimerKey,
    TimerKind, Timers, Work, WorkerLeases, encode_prefix,
};
use flotilla_engine::store::{KeyRange, MemoryStore, Order};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// Panics unless the tables agree.
pub(crate) fn check(store: &MemoryStore) {
    let state = State::load(store);
    state.runs.iter().for_each(|(number, run)| {
        state.check_run(*number, run);
        state.check_history(*number, run);
        trimming::check(store, *number, run);
        signals::check(store, *number, run);
    });
    state
        .action_runs
        .iter()
        .for_each(|(number, record)| state.check_action_run(*number, record));
    state
        .timers
        .iter()
        .for_each(|timer| state.check_timer(timer));
    state.check_queue();
    state.check_indexes();
    workers::check(store, &state.action_runs, &state.timers);
    plans::check(store, &state.runs, &state.timers);
    schedules::check(store);
    run_indexes::check(store);
    retention::check(store);
    dead_letters::check(store);
    approvals::check(store);
    timeouts::check(store);
    infos::check(store, &state.runs);
    usages::check(store);
    keys::check(store);
    namespaces::check(store);
    streams::check(store);
    groups::check(store);
    triggers::check(store);
    concurrency::check(store);
    exclusion::check(store);
    credentials::check(store);
    quotas::check(store);
    traces::check(&state.runs);
}

struct State<'a> {
    store: &'a MemoryStore,
    runs: BTreeMap<RunNumber, RunRecord>,
    activations: BTreeMap<(RunNumber, u64), Activation>,
    action_runs: BTreeMap<ActionRunNumber, ActionRunRecord>,
    /// The numbers under which each leased task is listed.
    holders: BTreeMap<ActionRunNumber, Vec<WorkerNumber>>,
    timers: BTreeSet<TimerKey>,
    /// The time of the last entry, in milliseconds.
    now_ms: u64,
}

impl<'a> State<'a> {
    fn load(store: &'a MemoryStore) -> Self {
        Self {
            store,
            runs: rows::<Runs>(store, &()).into_iter().collect(),
            activations: rows::<Activations>(store, &()).into_iter().collect(),
            action_runs: rows::<ActionRuns>(store, &()).into_iter().collect(),
            holders: workers::holders(store),
            timers: rows::<Timers>(store, &())
                .into_iter()
                .map(|(timer, ())| timer)
                .collect(),
            now_ms: read::<Cluster>(store, &()).map_or(0, |cluster| cluster.now_ms),
        }
    }

    /// An open run waits for something that will come; an ended one for nothing.
    fn check_run(&self, number: RunNumber, run: &RunRecord) {
        let id = &run.id;
        let active = rows::<Activations>(self.store, &number);
        let pending = rows::<PendingWorks>(self.store, &number);
        if let Some(continuation) = run.continuation {
            let timer = TimerKey {
                kind: TimerKind::Continuation,
                due_ms: continuation.due_ms,
                subject: number.0,
                detail: 0,
            };
            assert!(self.timers.contains(&timer), "{id} is continued");
            assert!(!pending.is_empty(), "{id} has work left");
        }
        match run.status {
            RunStatus::Pending if exclusion::is_delayed(run) => {}
            RunStatus::Waiting | RunStatus::Running | RunStatus::Pending => {
                assert_eq!(
                    run.continuation.is_none(),
                    run.status == RunStatus::Waiting,
                    "{id} is {} between entries",
                    run.status.name()
                );
                assert!(
                    run.continuation.is_some()
                        || !active.is_empty()
                        || exclusion::awaits_output_check(self.store, number),
                    "{id} waits without an active step"
                );
                assert_eq!(
                    (&run.end, run.completed_at_ms),
                    (&None, None),
                    "{id} is open"
                );
                active
                    .iter()
                    .for_each(|(_, active)| self.check_obligation(number, run, active));
            }
            RunStatus::Ended(_) => {
                assert!(active.is_empty(), "{} has ended on an active step", run.id);
                assert!(run.end.is_some(), "{} ended", run.id);
                assert!(run.completed_at_ms.is_some(), "{} ended", run.id);
            }
        }
        let definition = read::<Definitions>(self.store, &run.definition);
        let definition = definition.expect("a run is pinned to a definition that is kept");
        scopes::check(self.store, number, run, &definition.definition);
        let results = rows::<StepResults>(self.store, &number).into_iter();
        let outputs = results.filter_map(|(_, result)| result.output);
        let payloads = outputs.chain([run.input]).chain(run.output);
        payloads.for_each(|payload| self.check_payload(payload));
    }

    fn check_obligation(&self, number: RunNumber, run: &RunRecord, active: &Activation) {
        assert!(
            active.number <= run.activations_count,
            "{}: a future activation",
            run.id
        );
        let timer = |kind, due_ms| TimerKey {
            kind,
            due_ms,
            subject: number.0,
            detail: active.number,
        };
        let is_set = |kind, due_ms| self.timers.contains(&timer(kind, due_ms));
        let is_open = |number: &ActionRunNumber| {
            let action_run = self.action_runs.get(number);
            action_run.is_some_and(|record| record.status.is_open())
        };
        let is_met = match &active.state {
            ActivationState::Executing => run.continuation.is_some(),
            ActivationState::Action(action_run) => is_open(action_run),
            ActivationState::Signal(_) | ActivationState::Approval(_) => {
                let due_ms = active.state.due_ms();
                due_ms.is_none_or(|due_ms| is_set(TimerKind::StepDeadline, due_ms))
            }
            ActivationState::Child(child) => retention::is_any_attempt_open(self.store, *child),
            ActivationState::ChildInput { .. } | ActivationState::OutputCheck(_) => {
                read::<SchemaChecks>(self.store, &(number, active.number)).is_some()
            }
            ActivationState::Retry { due_ms }
            | ActivationState::Poll { due_ms }
            | ActivationState::Timer { due_ms }
            | ActivationState::Delay { due_ms } => is_set(TimerKind::StepWake, *due_ms),
            ActivationState::Plan(plan) => match plan.wait {
                PlanWait::Executing => false,
                PlanWait::Action(action_run) => is_open(&action_run),
                PlanWait::Retry { due_ms } => is_set(TimerKind::StepWake, due_ms),
            },
            // An open scope has a step or work left, which is checked elsewhere.
            ActivationState::Branches(_) | ActivationState::Iterations(_) => {
                scopes::are_open(self.store, number, active)
            }
        };
        assert!(
            is_met || self.has_work_left(number, active.number),
            "{} waits for {:?}, which will never come",
            run.id,
            active.state
        );
    }

    /// Whether the result that the activation waited for came in an entry that had no budget left for it.
    fn has_work_left(&self, number: RunNumber, awaiting: u64) -> bool {
        let mut works = rows::<PendingWorks>(self.store, &number).into_iter();
        works.any(|(_, work)| match work {
            Work::Execute { activation }
            | Work::ConcludeUndone { activation }
            | Work::EnterDelayed { activation }
            | Work::BeginChild { activation }
            | Work::BeginOnCancel { activation }
            | Work::DecideOutput { activation, .. }
            | Work::FinishStep { activation, .. }
            | Work::ChildBegan { activation, .. }
            | Work::ChildEnded { activation, .. } => activation == awaiting,
            Work::DecideChild(checked) => checked.activation == awaiting,
            Work::BeginBranch(place) => place.activation == awaiting,
            Work::BeginIteration { activation } => activation == awaiting,
            Work::SplitItems(place) => place.activation == awaiting,
            Work::TimeOutStep(overdue) => overdue.activation == awaiting,
            Work::Enter { .. }
            | Work::Continue { .. }
            | Work::EndScope(_)
            | Work::CancelScope { .. }
            | Work::DecideRunOutput { .. }
            | Work::CancelledStepEnded { .. }
            | Work::ForgetBranches(_)
            | Work::SettleSignals(_)
            | Work::ForgetWrites
            | Work::ForgetItems(_)
            | Work::TakeKeys
            | Work::ReplaceHolders(_)
            | Work::Finish(_)
            | Work::Cancel { .. }
            | Work::Force { .. }
            | Work::EndRun
            | Work::NextPhase
            | Work::Undo { .. }
            | Work::TimeOut => false,
        })
    }

    /// Sequence numbers run from 1 without a gap, but for the trimmed middle.
    fn check_history(&self, number: RunNumber, run: &RunRecord) {
        let cursor = &run.history;
        let mut last = 0;
        let mut kept = 0;
        let records = rows::<History>(self.store, &number);
        visits::check(self.store, number, run, &records);
        for ((_, first), record) in &records {
            if cursor.trimming.until > 0 && last == cursor.trimming.after {
                last = cursor.trimming.until;
            }
            assert_eq!(*first, last + 1, "{}: a gap in the history", run.id);
            assert!(!record.events.is_empty(), "{}: an empty record", run.id);
            last += record.events.len() as u64;
            kept += record.events.len() as u64;
        }
        assert_eq!(last, cursor.events_count, "{}: the history's end", run.id);
        assert!(
            kept <= HISTORY_EVENTS_MAX,
            "{}: {kept} events are kept",
            run.id
        );
        let is_head_kept =
            cursor.trimming.until == 0 || cursor.trimming.after >= HISTORY_HEAD_EVENTS;
        assert!(is_head_kept, "{}: the head was trimmed", run.id);
    }

    /// A pending task is in the queue or has a timer; a running one has a lease, its timer and a
    /// place in its worker's list; an ended one nothing.
    fn check_action_run(&self, number: ActionRunNumber, record: &ActionRunRecord) {
        let is_queued = self.is_queued(number, record);
        // A released one may also have an overdue timer, which fires without effect.
        let now_ms = self.now_ms;
        let is_delayed = self.timers.iter().any(|timer| {
            timer.kind == TimerKind::TaskReady
                && (timer.subject, timer.detail) == (number.0, u64::from(record.attempt))
                && !(is_queued && timer.due_ms <= now_ms)
        });
        let holders: &[WorkerNumber] = self.holders.get(&number).map_or(&[], Vec::as_slice);
        let is_expiring = |due_ms| {
            self.timers.contains(&TimerKey {
                kind: TimerKind::ReportExpiry,
                due_ms,
                subject: number.0,
                detail: u64::from(record.attempt),
            })
        };
        match (&record.lease, record.status) {
            (None, ActionRunStatus::Running) => {
                let report = record.report.expect("what runs has a lease or a report");
                assert!(report.deadline_at_ms.is_none_or(is_expiring), "{number}");
                assert!(!is_queued && holders.is_empty(), "{number} is accepted");
            }
            (None, ActionRunStatus::Pending) => {
                assert!(
                    is_queued != is_delayed,
                    "{number} is pending: {is_queued} {is_delayed}"
                );
                assert!(holders.is_empty(), "{number} is pending and held");
            }
            (Some(lease), ActionRunStatus::Running) => {
                assert_eq!(
                    holders,
                    [lease.holder],
                    "{number} is held by another than it says"
                );
                assert!(!is_queued, "{number} is leased and in the queue");
            }
            (lease, status) => {
                assert!(
                    !status.is_open() && lease.is_none(),
                    "{number} is {status:?}"
                );
                assert!(!is_queued && holders.is_empty(), "{number} has ended");
                assert!(record.completed_at_ms.is_some(), "{number} has ended");
            }
        }
        self.check_owner(number, record);
        [record.input]
            .into_iter()
            .chain(record.output)
            .for_each(|payload| self.check_payload(payload));
    }

    /// An open action run is what its step waits for; an accepted one has a right to report (W38).
    fn check_owner(&self, number: ActionRunNumber, record: &ActionRunRecord) {
        let is_accepted = record.lease.is_none() && record.status == ActionRunStatus::Running;
        assert_eq!(
            record.report.is_some(),
            is_accepted,
            "the report on {number}"
        );
        if let (ActionRunOwner::Step { run, activation }, true) =
            (record.owner, record.status.is_open())
        {
            let active = self.activations.get(&(run, activation));
            let awaited = active.and_then(|active| active.state.action_run());
            assert_eq!(awaited, Some(number), "{number} has no owner");
        }
    }

    fn is_queued(&self, number: ActionRunNumber, record: &ActionRunRecord) -> bool {
        let key = (
            record.namespace.clone(),
            record.action.clone(),
            LabelSet(record.labels.clone()),
            u8::MAX - record.priority,
            number,
        );
        read::<Ready>(self.store, &key).is_some()
    }

    /// The queues hold pending tasks only, and their counts say how many.
    fn check_queue(&self) {
        let mut actions: BTreeMap<_, ReadyActionRecord> = BTreeMap::new();
        let mut waiting: BTreeMap<_, u64> = BTreeMap::new();
        for ((namespace, action, labels, _, number), ()) in rows::<Ready>(self.store, &()) {
            let record = &self.action_runs[&number];
            assert_eq!(
                record.status,
                ActionRunStatus::Pending,
                "{number} is in the queue"
            );
            assert!(
                self.is_queued(number, record),
                "{number} is in another queue"
            );
            if labels.0.is_empty() {
                let of_action: &mut ReadyActionRecord =
                    actions.entry((namespace, action)).or_default();
                of_action.tasks_count += 1;
            } else {
                *waiting.entry((namespace, action, labels.0)).or_default() += 1;
            }
        }
        let mut open: BTreeMap<_, u64> = BTreeMap::new();
        let asking = self.action_runs.values();
        for run in asking.filter(|run| run.status.is_open() && !run.labels.is_empty()) {
            let queue = (
                run.namespace.clone(),
                run.action.clone(),
                run.labels.clone(),
            );
            *open.entry(queue).or_default() += 1;
        }
        for ((namespace, action, place), queue) in rows::<LabelQueues>(self.store, &()) {
            let of_action = actions.entry((namespace.clone(), action.clone()));
            let of_action = of_action.or_default();
            let is_waiting = queue.waiting_count > 0;
            of_action.label_queues.set(place, true);
            of_action.label_queues_waiting.set(place, is_waiting);
            let key = (namespace, action, queue.labels);
            let counted = (open.remove(&key), waiting.remove(&key).unwrap_or_default());
            assert_eq!(
                counted,
                (Some(queue.open_count), queue.waiting_count),
                "{key:?}"
            );
        }
        assert!(
            open.is_empty() && waiting.is_empty(),
            "{open:?} {waiting:?}"
        );
        let counted = rows::<ReadyActions>(self.store, &());
        assert_eq!(counted.into_iter().collect::<BTreeMap<_, _>>(), actions);
    }

    /// A timer that is set belongs to something that still wants it.
    fn check_timer(&self, timer: &TimerKey) {
        let at = (RunNumber(timer.subject), timer.detail);
        let state = self.activations.get(&at).map(|active| &active.state);
        let action_run = self.action_runs.get(&ActionRunNumber(timer.subject));
        let is_wanted = match timer.kind {
            TimerKind::StepWake => timeouts::wakes(state, timer.due_ms),
            TimerKind::RunTimeout => true,
            TimerKind::RunStart => timeouts::begins(self.store, timer),
            TimerKind::StepTotal | TimerKind::StepAttempt => {
                timeouts::has_step_timer(self.activations.get(&at), timer)
            }
            TimerKind::StepDeadline => approvals::has_deadline(state, timer.due_ms),
            // A cancelled action run's delay is not taken back: it wakes, looks, and does nothing,
            // even when the action run is forgotten.
            TimerKind::TaskReady => {
                let is_waiting = action_run.is_none_or(|record| record.lease.is_none());
                is_waiting || timer.due_ms <= self.now_ms
            }
            TimerKind::LeaseExpiry => workers::are_leases_watched(self.store, timer),
            TimerKind::WorkerSilence => workers::is_watched(self.store, timer),
            TimerKind::WorkerGone => workers::is_left(self.store, timer),
            TimerKind::ReportExpiry => action_run
                .filter(|record| u64::from(record.attempt) == timer.detail)
                .and_then(|record| record.report)
                .is_some_and(|report| report.deadline_at_ms == Some(timer.due_ms)),
            TimerKind::WaitExpiry => action_run
                .filter(|record| u64::from(record.attempt) == timer.detail)
                .is_some_and(|record| record.wait_ends_at_ms == Some(timer.due_ms)),
            TimerKind::CacheExpiry => plans::has_sweep(self.store, timer),
            TimerKind::StreamSweep => streams::is_due(self.store, timer),
            TimerKind::GroupDue => groups::is_due(self.store, timer),
            TimerKind::Continuation => {
                // One that is overdue by its run's whole retention fires without effect: the run is forgotten.
                let run = self.runs.get(&RunNumber(timer.subject));
                run.is_none_or(|run| {
                    let continuation = run.continuation;
                    continuation.is_some_and(|continuation| continuation.due_ms == timer.due_ms)
                })
            }
        };
        assert!(is_wanted, "nothing waits for {timer:?}");
    }

    /// Indexes and counters say what the records say.
    fn check_indexes(&self) {
        for ((_, id), number) in rows::<RunNames>(self.store, &()) {
            assert_eq!(self.runs[&number].id, id, "the name of run {}", number.0);
        }
        concurrency::check_idempotency_keys(self.store, &self.runs);
        exclusion::check_requests(self.store, &self.activations);
        let cluster = read::<Cluster>(self.store, &()).unwrap_or_default();
        let last = self.runs.last_key_value().map_or(0, |(number, _)| number.0);
        assert!(cluster.run_count >= last);
        let last = self.action_runs.last_key_value();
        assert!(cluster.action_runs_count >= last.map_or(0, |(number, _)| number.0));
        self.check_requests(&cluster);
        workflows::check(self.store);
    }

    /// Each id is listed by the entry that accepted it, though the list may outlive the id's first use.
    fn check_requests(&self, cluster: &ClusterRecord) {
        let ages = rows::<RequestAges>(self.store, &());
        let accepted = || ages.iter().flat_map(|(_, age)| age.by_scope.values());
        let count: usize = accepted().map(|accepted| accepted.ids.len()).sum();
        assert_eq!(cluster.requests.count, count as u64);
        let first = ages.first().map(|(index, _)| *index);
        assert!(first.is_none_or(|first| first >= cluster.requests_first));
        assert!(ages.is_sorted_by_key(|(_, age)| age.at_ms));
        let bytes: u64 = accepted().map(|accepted| accepted.bytes).sum();
        assert_eq!(cluster.requests.bytes, bytes);
        let mut used = BTreeMap::<CommandScope, RequestUsage>::new();
        for (scope, accepted) in ages.iter().flat_map(|(_, age)| &age.by_scope) {
            let used = used.entry(scope.clone()).or_default();
            used.count += accepted.usage().count;
            used.bytes += accepted.usage().bytes;
        }
        let listed = rows::<RequestUsages>(self.store, &());
        assert_eq!(BTreeMap::from_iter(listed), used);
        for ((scope, id), record) in rows::<Requests>(self.store, &()) {
            let age = read::<RequestAges>(self.store, &record.accepted_by);
            let age = age.expect("a remembered id is listed by its entry");
            assert_eq!(age.at_ms, record.at_ms);
            let ids = &age.by_scope[&scope].ids;
            assert_eq!(ids.iter().filter(|listed| **listed == id).count(), 1);
        }
    }

    fn check_payload(&self, payload: PayloadRef) {
        if retention::is_forgotten(self.store, payload) {
            return;
        }
        assert!(
            read::<Payloads>(self.store, &payload).is_some(),
            "{payload:?} is missing"
        );
        let input = read::<Payloads>(self.store, &PayloadRef::input_of(payload.owner));
        let is_text = matches!(input, Some(StoredPayload::Text(_)));
        assert!(is_text, "the input beside {payload:?} is {input:?}");
    }
}

/// The rows of a table whose keys begin with `prefix`.
pub(crate) fn rows<T: Table>(store: &MemoryStore, prefix: &impl Key) -> Vec<(T::Key, T::Record)> {
    let mut rows = Vec::new();
    let range = KeyRange::prefix(&encode_prefix::<T>(prefix));
    rows::visit::<T>(store, &range, Order::Ascending, |key, record| {
        rows.push((key, record));
        ControlFlow::Continue(())
    })
    .expect("memory does not fail");
    rows
}

/// The leases of workers, or of the worker that `prefix` names, in their order.
pub(crate) fn leases(store: &MemoryStore, prefix: &impl Key) -> Vec<(WorkerNumber, LeasePlace)> {
    let blocks = rows::<WorkerLeases>(store, prefix).into_iter();
    let leases = blocks.flat_map(|((worker, block), tasks)| {
        assert!(!tasks.is_empty(), "a block without leases is deleted");
        block.places(tasks).map(move |place| (worker, place))
    });
    leases.collect()
}

/// The action runs in the index by action.
pub(crate) fn by_action(store: &MemoryStore) -> Vec<(Namespace, ActionName, ActionRunNumber)> {
    let blocks = rows::<ActionRunsByAction>(store, &()).into_iter();
    let listed = blocks.flat_map(|((namespace, action, block), set)| {
        assert!(!set.is_empty(), "a block without action runs is deleted");
        let numbers = set.of_block(block);
        numbers.map(move |number| (namespace.clone(), action.clone(), number))
    });
    listed.collect()
}

/// One record.
pub(crate) fn read<T: Table>(store: &MemoryStore, key: &T::Key) -> Option<T::Record> {
    rows::read::<T>(store, key).expect("memory does not fail")
}
