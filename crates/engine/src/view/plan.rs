//! Reads the state of plans, as `flo plan status` shows it (W31–W33).

use super::cluster;
use crate::definition::{Definition, Executor, Plan, RateLimit, RateWindow, RunTarget, Selection};
use crate::ids::{ActionName, ExecutorName, Namespace, PlanName, PlanRef, WorkflowName};
use crate::plan::{
    BreakerDecision, decide, full_until_ms, probes_count, probes_max, remaining_calls, score,
};
use crate::store::{Reader, StoreError};
use crate::tables::{
    Activation, BreakerState, Definitions, PlanExecutorRecord, PlanExecutors, PlanRecord, Plans,
    RunRecord, Workflows, read,
};

/// A plan of a workflow's latest revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanView {
    /// Its name.
    pub name: PlanName,
    /// How the order of its executors is chosen.
    pub selection: Selection,
    /// In document order.
    pub executors: Vec<ExecutorView>,
    /// What is cached, for a plan that caches.
    pub cache: Option<CacheView>,
}

/// An executor and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutorView {
    /// Its name.
    pub name: ExecutorName,
    /// The action that it runs.
    pub action: ActionName,
    /// Higher goes first.
    pub priority: i32,
    /// How healthy it is, where the plan tracks health.
    pub health: Option<HealthView>,
    /// Its breaker, where it has one.
    pub breaker: Option<BreakerView>,
    /// Its limited windows, the shortest first.
    pub rates: Vec<RateView>,
}

/// The health of an executor (W31), in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthView {
    /// The score, the breaker's share included.
    pub score: u32,
    /// How often a business result came back.
    pub api_success: u32,
    /// How often it was `success`.
    pub business_success: u32,
    /// Results that these were computed from.
    pub samples_count: u32,
}

/// A circuit breaker (W32).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakerView {
    /// Where it stands.
    pub status: BreakerStatus,
    /// Attempts in a row that failed, while it is closed.
    pub failures_count: u32,
    /// Failures in a row that open it.
    pub failure_threshold: u32,
    /// Until when it is open, in milliseconds.
    pub open_until_ms: Option<u64>,
    /// Probes in flight, while it is half-open.
    pub open_probe_count: u32,
    /// Probes that may be in flight.
    pub probes_max: u32,
}

/// The manual's breaker states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerStatus {
    /// Calls flow.
    Closed,
    /// Calls are skipped.
    Open,
    /// Probes are let through.
    HalfOpen,
}

impl BreakerStatus {
    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// A limited window (W33).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateView {
    /// The window's length: a second, a minute or an hour.
    pub window: RateWindow,
    /// Calls that it may hold.
    pub calls_max: u32,
    /// Calls that it has room for now.
    pub calls_remaining: u32,
}

/// What a plan has cached (W37).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheView {
    /// Results that are stored; expired and dropped ones are taken away later.
    pub results_count: u64,
    /// Their outputs together, in bytes.
    pub bytes: u64,
}

/// The plan of a workflow's latest revision, as an execution at `now_ms` would find it; `None` if it does not exist.
/// `now_ms` is raised to the log's clock, which stands still while the cluster is idle.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn plan(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &PlanRef,
    now_ms: u64,
) -> Result<Option<PlanView>, StoreError> {
    let PlanRef { workflow, plan } = name;
    let Some(record) = read::<Workflows>(reader, &(namespace.clone(), workflow.clone()))? else {
        return Ok(None);
    };
    let latest = read::<Definitions>(reader, &record.latest)?;
    let definition = latest.map(|latest| latest.definition);
    let Some(plan) = definition
        .as_ref()
        .and_then(|latest| latest.plan_named(plan))
    else {
        return Ok(None);
    };
    let mut state = State::read(
        reader,
        (namespace.clone(), workflow.clone(), plan.name.clone()),
    )?;
    state.now_ms = state.now_ms.max(now_ms);
    let mut executors = Vec::new();
    for executor in &plan.executors {
        executors.push(state.executor(reader, plan, executor)?);
    }
    let usage = state.record.map(|record| record.cache).unwrap_or_default();
    Ok(Some(PlanView {
        name: plan.name.clone(),
        selection: plan.selection,
        executors,
        cache: plan.cache.as_ref().map(|_| CacheView {
            results_count: usage.results_count,
            bytes: usage.bytes,
        }),
    }))
}

/// Describes the rate limit that blocks an executor of the step's plan (W21a).
pub(super) fn rate_detail(
    reader: &dyn Reader,
    run: &RunRecord,
    definition: &Definition,
    active: &Activation,
) -> Result<Option<String>, StoreError> {
    let call = definition.step(active.step).call(active.call);
    let Some(RunTarget::Plan(index)) = call.map(|call| &call.target) else {
        return Ok(None);
    };
    let plan = definition.plan(*index);
    let key = (
        run.namespace.clone(),
        definition.name.clone(),
        plan.name.clone(),
    );
    let state = State::read(reader, key)?;
    for executor in &plan.executors {
        let Some(limit) = &executor.rate_limit else {
            continue;
        };
        let calls = state.executor_record(reader, executor)?.calls;
        if let Some(until_ms) = full_until_ms(&calls, limit, state.now_ms) {
            let name = &executor.name;
            return Ok(Some(format!(
                "rate limit of executor \"{name}\" until {until_ms}"
            )));
        }
    }
    Ok(None)
}

/// The stored state of a plan.
struct State {
    record: Option<PlanRecord>,
    now_ms: u64,
}

impl State {
    fn read(
        reader: &dyn Reader,
        key: (Namespace, WorkflowName, PlanName),
    ) -> Result<Self, StoreError> {
        Ok(Self {
            record: read::<Plans>(reader, &key)?,
            now_ms: cluster(reader)?.now_ms,
        })
    }

    fn executor_record(
        &self,
        reader: &dyn Reader,
        executor: &Executor,
    ) -> Result<PlanExecutorRecord, StoreError> {
        let Some(plan) = &self.record else {
            return Ok(PlanExecutorRecord::default());
        };
        let key = (plan.number, executor.name.clone());
        Ok(read::<PlanExecutors>(reader, &key)?.unwrap_or_default())
    }

    fn executor(
        &self,
        reader: &dyn Reader,
        plan: &Plan,
        executor: &Executor,
    ) -> Result<ExecutorView, StoreError> {
        let record = self.executor_record(reader, executor)?;
        let health = plan.health.as_ref().map(|settings| {
            let health = score(&record, executor, settings, self.now_ms);
            HealthView {
                score: health.score,
                api_success: health.api,
                business_success: health.business,
                samples_count: health.samples_count,
            }
        });
        let rates = executor.rate_limit.as_ref();
        Ok(ExecutorView {
            name: executor.name.clone(),
            action: executor.action.clone(),
            priority: executor.priority,
            health,
            breaker: self.breaker(executor, &record.breaker),
            rates: rates.map_or_else(Vec::new, |limit| self.rates(limit, &record)),
        })
    }

    fn breaker(&self, executor: &Executor, state: &BreakerState) -> Option<BreakerView> {
        let settings = executor.breaker.as_ref()?;
        let (failures_count, open_probe_count) = match state {
            BreakerState::Closed { failures_count } => (*failures_count, 0),
            BreakerState::Open { .. } => (0, 0),
            BreakerState::HalfOpen { probes } => (0, probes_count(probes)),
        };
        let (status, open_until_ms) = match decide(state, settings, self.now_ms) {
            BreakerDecision::Free => (BreakerStatus::Closed, None),
            BreakerDecision::Blocked { until_ms: Some(ms) } => (BreakerStatus::Open, Some(ms)),
            BreakerDecision::Blocked { until_ms: None } | BreakerDecision::Probe => {
                (BreakerStatus::HalfOpen, None)
            }
        };
        Some(BreakerView {
            status,
            failures_count,
            failure_threshold: settings.failure_threshold,
            open_until_ms,
            open_probe_count,
            probes_max: probes_max(settings),
        })
    }

    fn rates(&self, limit: &RateLimit, record: &PlanExecutorRecord) -> Vec<RateView> {
        let rate = |window| {
            Some(RateView {
                window,
                calls_max: limit.calls_max(window)?,
                calls_remaining: remaining_calls(&record.calls, limit, window, self.now_ms)?,
            })
        };
        RateWindow::ALL.into_iter().filter_map(rate).collect()
    }
}
