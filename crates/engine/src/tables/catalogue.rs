//! The catalogue of all tables by number.

use super::*;

macro_rules! catalogue {
    ($($table:ident)*) => {
        /// The name of the table that a row belongs to. Decodes both its key and its record.
        ///
        /// # Errors
        /// [`StoreError`] if the row belongs to no table: it is damaged, or a newer version wrote it.
        pub fn check_row(key: &[u8], record: &[u8]) -> Result<&'static str, StoreError> {
            match key.first() {
                $(Some(&$table::NUMBER) => {
                    decode_row::<$table>(key, record).map(|_| stringify!($table))
                })*
                _ => Err(StoreError(
                    format!("expected a key of a table, but found {key:02x?}").into(),
                )),
            }
        }
    };
}

/// Calls a macro with the names of all tables, so that they are listed only once.
#[macro_export]
macro_rules! for_each_table {
    ($callback:ident) => {
        $callback! {
            Cluster Workflows Versions Definitions DefinitionSources Runs RunNames IdempotencyKeys Payloads History
            SignalsWaiting SignalIds Actions Modules ActionRuns ActionRunsByAction ActionRunKeys Ready Timers Workers
            WorkerActivities WorkerNumbers Requests Quarantine SchemaChecks RevisionsByContent RequestAges
            ReadyActions LabelQueues WorkerCounts SilentWorkers Plans PlanNumbers PlanExecutors CachedResults
            CacheExpiries Schedules SchedulesDue RunsByWorkflow RunsByStatus RunsByCompletion RunsByAttribute
            Expirations RunRemains DeadLetters DeadLetterInputs DeadLetterQueues Keys KeyExpiries Namespaces Streams
            StreamNames Records Groups GroupNames Consumers Deliveries Redeliveries Triggers TriggersByStream
            TriggersDue Activations StepResults Scopes BranchResults States PendingWorks ActionRunsByRun PayloadsHeld
            SignalIdPlaces TakenSignals Items IterationResults Decisions Compensations DeadLetterPlaces StreamCounts WorkflowCounts WorkerLeases WorkerProcesses GoneWorkers
            PlansByEvent WorkflowsBeingDeleted ConcurrencyKeyNumbers ConcurrencyKeys ConcurrencyHolders ConcurrencyQueue
            BoundIdempotencyKeys Exclusions TargetHolders OpenLocks Locks LockCounts LockHolders ResumableScopes ResumableSteps Infos RunUsages
            StepUsages Revisions RequestUsages ClusterSettings Access Tokens TokensByScope TokenSecrets TokenCounts
            TokensEnding Bindings BindingsByScope BindingCounts BlockedSubjects BlockedSubjectCount
            BlocksEnding Quotas Usages TreeUsages QuotaWindows
        }
    };
}

for_each_table!(catalogue);
