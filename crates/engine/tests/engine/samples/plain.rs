//! Commands as a test needs them that is about something else.

use flotilla_engine::definition::Definition;
use flotilla_engine::ids::{WorkerId, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{ActionType, WorkerType};
use flotilla_engine::{
    Body, CompleteTask, CreateDefinition, InvokeAction, RegisterAction, RegisterWorker, StartRun,
    TaskToken, VersionChoice,
};
use std::collections::BTreeMap;

/// The registration of [`super::action`], without retries.
pub(crate) fn plain_action() -> RegisterAction {
    RegisterAction {
        name: super::action(),
        kind: ActionType::User,
        module: None,
        timeout_ms: 30_000,
        max_retries: 0,
        retry_delay_ms: 0,
        description: None,
        is_only_if_missing: false,
    }
}

/// A report that a task has succeeded, without anything but its output.
pub(crate) fn plain_completion(token: TaskToken, output: Json) -> Body {
    Body::CompleteTask(CompleteTask {
        token,
        outcome: super::outcome(),
        output,
        not_before: None,
        state_patch: None,
        usage: None,
    })
}

/// The registration of a worker.
pub(crate) fn plain_worker(worker_id: WorkerId) -> RegisterWorker {
    RegisterWorker {
        worker_id,
        incarnation: 1,
        kind: WorkerType::Action,
        max_concurrency: 10,
        processes: Vec::new(),
        labels: BTreeMap::new(),
        metadata: None,
        machine_id: None,
        node: None,
    }
}

/// The creation of a revision.
pub(crate) fn plain_revision(definition: Definition) -> CreateDefinition {
    CreateDefinition {
        definition,
        source: String::new(),
        make_latest: false,
    }
}

/// A start of the latest revision of a workflow.
pub(crate) fn plain_start(workflow: &str, input: Json) -> StartRun {
    StartRun {
        workflow: WorkflowName::new(workflow).expect("a name"),
        version: VersionChoice::Latest,
        input,
        input_checked_for: None,
        idempotency_key: None,
        run_id: None,
        trace: None,
        start_time: None,
        metadata: None,
        target: None,
        locks: None,
    }
}

/// A stand-alone run of [`super::action`].
pub(crate) fn plain_invocation() -> InvokeAction {
    InvokeAction {
        name: super::action(),
        input: Json::null(),
        priority: 10,
        delay_ms: 0,
        labels: BTreeMap::new(),
        idempotency_key: None,
    }
}
