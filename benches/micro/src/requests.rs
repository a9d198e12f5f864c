//! The requests of callers.

use flotilla_engine::definition::Definition;
use flotilla_engine::ids::{ActionName, Namespace, RunId, SignalType, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::ActionType;
use flotilla_engine::{
    Body, Command, CreateDefinition, RegisterAction, RequestId, SignalRun, StartRun,
};

/// A payload of 100 bytes.
const PAYLOAD: &str = concat!(
    r#"{"order":"o-2093","customer":"c-5521","items":[{"sku":"A-1","count":2}],"#,
    r#""total_cents":12990,"x":"y"}"#
);
const _: () = assert!(PAYLOAD.len() == 100);

/// The input of a run, the output of a task, the payload of a signal.
pub(crate) fn payload() -> Json {
    Json::from_checked(PAYLOAD.to_owned())
}

/// A command without a request id: a driver's, or one that has a key instead.
pub(crate) fn command(body: Body) -> Command {
    body.into_command(Namespace::default_namespace())
}

/// The start of request ids: as long as a UUID of version 7.
const REQUEST_ID_FIRST: u128 = 0x019a_a000_0000_7000_8000_0000_0000_0000;

/// The `count`th command as the client library sends it. Neighbors in time are neighbors in the store (ADR 0023).
pub(crate) fn sent(body: Body, count: u128) -> Command {
    Command {
        request_id: Some(RequestId(REQUEST_ID_FIRST + count)),
        ..command(body)
    }
}

/// The workflow of a definition.
pub(crate) fn definition(text: &str) -> Definition {
    let parsed = flotilla_dsl::parse(text);
    let definition = parsed.definition;
    definition.unwrap_or_else(|| panic!("expected a definition, but {:?}", parsed.findings))
}

/// Creates the workflow of a definition.
pub(crate) fn create(text: &str) -> Body {
    Body::CreateDefinition(Box::new(CreateDefinition {
        definition: definition(text),
        source: text.to_owned(),
        make_latest: true,
    }))
}

/// Registers an action that workers run.
pub(crate) fn register_action(name: &ActionName) -> Body {
    Body::RegisterAction(Box::new(RegisterAction {
        name: name.clone(),
        kind: ActionType::User,
        module: None,
        timeout_ms: 30_000,
        max_retries: 3,
        retry_delay_ms: 1_000,
        description: None,
        is_only_if_missing: false,
    }))
}

/// Starts a run.
pub(crate) fn start(workflow: &WorkflowName) -> Body {
    Body::StartRun(StartRun::new(workflow.clone(), payload()))
}

/// Sends a run the signal for which it waits.
pub(crate) fn signal(run_id: RunId, signal_type: &SignalType) -> Body {
    Body::SignalRun(SignalRun {
        run_id,
        signal_type: signal_type.clone(),
        payload: payload(),
        scope: None,
        signal_id: None,
    })
}
