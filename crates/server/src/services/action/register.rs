//! Registering an action (A1, A9).

use super::registry;
use crate::access::CallContext;
use crate::errors::{Refusal, ServerCode};
use crate::modules::Unavailable;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::ActionName;
use flotilla_engine::limits::{
    ACTION_RETRY_DELAY_MS_MAX, ATTEMPTS_MAX, LEASE_MS_MAX, MESSAGE_BYTES_MAX, MODULE_BYTES_MAX,
};
use flotilla_engine::{ActionType, WasmLimits};
use flotilla_engine::{Command, RegisterAction, reply};
use flotilla_wasm::{Limits, ModuleDigest, ModuleRejected, inspect, to_binary};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};

/// An action's timeout if its registration gives none (A1).
const TIMEOUT_MS_DEFAULT: u64 = Limits::TIMEOUT_MS_DEFAULT;
/// An action's retries if its registration gives none (A1).
const RETRIES_DEFAULT: u32 = 3;
/// An action's retry delay if its registration gives none (A1).
const RETRY_DELAY_MS_DEFAULT: u64 = 1_000;

/// Serves `RegisterAction`.
pub(super) async fn register(
    context: &CallContext,
    request: v1::RegisterActionRequest,
    deadline: Instant,
) -> Result<v1::RegisterActionResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let request_id = Some(request::request_id(&request.request_id)?);
    // Modules are parsed and validated, which takes time.
    let registration = tokio::task::spawn_blocking(move || registration(request))
        .await
        .map_err(|error| Refusal::internal(format!("the module's check failed: {error}")))??;
    try_module(context, &registration, deadline).await?;
    let name = registration.name.clone();
    let body = Box::new(registration);
    let command = Command {
        request_id,
        scope: namespace.clone(),
        body,
    };
    let reply::ActionRegistered { is_changed, .. } =
        context.gateway.submit(command, deadline).await?;
    let changed = is_changed;
    let action = registry::find(context, &namespace, name, deadline).await?;
    Ok(v1::RegisterActionResponse {
        action: Some(action),
        changed,
    })
}

/// Finds out whether the module of a WASM action can be compiled within the limits (A9).
async fn try_module(
    context: &CallContext,
    registration: &RegisterAction,
    deadline: Instant,
) -> Result<(), Refusal> {
    let (ActionType::Wasm { digest, .. }, Some(module)) =
        (&registration.kind, &registration.module)
    else {
        return Ok(());
    };
    let trial = context.modules.admit(ModuleDigest(*digest), module.clone());
    match timeout_at(deadline, trial).await {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Unavailable::Unknown(refusal))) => Err(refusal),
        Ok(Err(Unavailable::Broken(broken))) => {
            let refusal = Refusal::new(ServerCode::ModuleInvalid, broken.to_string());
            let refusal = match broken.hint() {
                Some(hint) => refusal.with_hint(hint),
                None => refusal,
            };
            Err(refusal.at("wasm_module"))
        }
        Err(_) => {
            let message =
                "expected to compile the module before the request's deadline, but it is not done";
            Err(Refusal::unavailable(message)
                .with_hint("retry with a longer timeout: the compilation continues meanwhile"))
        }
    }
}

fn registration(request: v1::RegisterActionRequest) -> Result<RegisterAction, Refusal> {
    let name = request::name("name", ActionName::new(request.name.clone()))?;
    let timeout_ms = request.timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT);
    request::within("timeout_ms", timeout_ms, 1..=LEASE_MS_MAX)?;
    let max_retries = request.max_retries.unwrap_or(RETRIES_DEFAULT);
    request::within(
        "max_retries",
        max_retries.into(),
        0..=u64::from(ATTEMPTS_MAX - 1),
    )?;
    let retry_delay_ms = request.retry_delay_ms.unwrap_or(RETRY_DELAY_MS_DEFAULT);
    request::within(
        "retry_delay_ms",
        retry_delay_ms,
        0..=ACTION_RETRY_DELAY_MS_MAX,
    )?;
    if request.description.len() > MESSAGE_BYTES_MAX {
        let message = format!(
            "expected a description of at most {MESSAGE_BYTES_MAX} bytes, but it has {}",
            request.description.len()
        );
        return Err(Refusal::too_large(message).at("description"));
    }
    let (kind, module) = match request.r#type() {
        v1::ActionType::Unspecified | v1::ActionType::User => (user(&request)?, None),
        v1::ActionType::Wasm => {
            let (kind, module) = wasm(&request, timeout_ms)?;
            (kind, Some(module))
        }
    };
    Ok(RegisterAction {
        name,
        kind,
        module,
        timeout_ms,
        max_retries,
        retry_delay_ms,
        description: Some(request.description).filter(|description| !description.is_empty()),
        is_only_if_missing: request.only_if_missing,
    })
}

/// The type of an action that outside workers run.
fn user(request: &v1::RegisterActionRequest) -> Result<ActionType, Refusal> {
    let for_wasm = [
        ("wasm_module", !request.wasm_module.is_empty()),
        ("max_memory_bytes", request.max_memory_bytes.is_some()),
        ("max_output_bytes", request.max_output_bytes.is_some()),
    ];
    match for_wasm.into_iter().find(|(_, is_given)| *is_given) {
        Some((field, _)) => {
            let message =
                format!("expected `{field}` for actions of type wasm only, but the type is user");
            Err(Refusal::invalid(field, message))
        }
        None => Ok(ActionType::User),
    }
}

/// The type and the module of an action that the nodes run (A9).
fn wasm(
    request: &v1::RegisterActionRequest,
    timeout_ms: u64,
) -> Result<(ActionType, Vec<u8>), Refusal> {
    let default = Limits::default();
    let limits = WasmLimits {
        max_memory_bytes: request
            .max_memory_bytes
            .unwrap_or(default.max_memory_bytes() as u64),
        max_output_bytes: request
            .max_output_bytes
            .unwrap_or(default.max_output_bytes() as u64),
    };
    let checked = Limits::new(limits.max_memory_bytes, limits.max_output_bytes, timeout_ms)
        .map_err(|error| Refusal::invalid("limits", error.to_string()))?;
    let module = binary(&request.wasm_module)?;
    inspect(&module, &checked).map_err(rejected)?;
    let digest = Sha256::digest(&module).into();
    Ok((ActionType::Wasm { digest, limits }, module))
}

/// The binary form of a module, which may be given as text.
fn binary(module: &[u8]) -> Result<Vec<u8>, Refusal> {
    if module.is_empty() {
        let message = "expected a module for an action of type wasm, but it is missing";
        return Err(Refusal::invalid("wasm_module", message)
            .with_hint("give the module with `--wasm FILE`"));
    }
    let bounded = |bytes: usize| {
        if bytes <= MODULE_BYTES_MAX {
            return Ok(());
        }
        let message =
            format!("expected a module of at most {MODULE_BYTES_MAX} bytes, but it has {bytes}");
        Err(Refusal::too_large(message)
            .at("wasm_module")
            .with_hint("strip its debug information"))
    };
    bounded(module.len())?;
    let binary = to_binary(module).map_err(rejected)?.into_owned();
    bounded(binary.len())?;
    Ok(binary)
}

fn rejected(rejection: ModuleRejected) -> Refusal {
    Refusal::new(ServerCode::ModuleInvalid, rejection.to_string())
        .with_hint(rejection.hint())
        .at("wasm_module")
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = r#"(module (memory (export "memory") 1)
        (func (export "alloc") (param i32) (result i32) i32.const 0)
        (func (export "handle") (param i32 i32) (result i64) i64.const 0))"#;

    fn request(action_type: v1::ActionType, module: &str) -> v1::RegisterActionRequest {
        v1::RegisterActionRequest {
            name: "charge".to_owned(),
            r#type: action_type.into(),
            wasm_module: module.to_owned().into(),
            ..Default::default()
        }
    }

    fn user_action() -> v1::RegisterActionRequest {
        request(v1::ActionType::Unspecified, "")
    }

    fn refused(request: v1::RegisterActionRequest) -> String {
        registration(request).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let made = registration(user_action()).unwrap();
        assert_eq!(
            (made.timeout_ms, made.max_retries, made.retry_delay_ms),
            (30_000, 3, 1_000)
        );
        assert_eq!(
            (made.kind, made.module, made.description),
            (ActionType::User, None, None)
        );
        assert!(!made.is_only_if_missing);
    }

    #[test]
    fn a_module_in_text_is_stored_as_a_binary_with_its_digest_and_limits() {
        let made = registration(request(v1::ActionType::Wasm, MODULE)).unwrap();
        let module = made.module.unwrap();
        assert_eq!(&module[..4], b"\0asm");
        let ActionType::Wasm { digest, limits } = made.kind else {
            panic!("it is wasm")
        };
        assert_eq!(digest, <[u8; 32]>::from(Sha256::digest(&module)));
        assert_eq!(
            (limits.max_memory_bytes, limits.max_output_bytes),
            (16 << 20, 1 << 20)
        );
    }

    #[test]
    fn a_bad_module_is_refused_for_its_own_reason() {
        let wasm = |module: &str| request(v1::ActionType::Wasm, module);
        assert!(refused(wasm("")).contains("it is missing"));
        assert!(refused(wasm("(module")).contains("(module_invalid)"));
        assert!(refused(wasm("(module)")).contains("`memory`"));
        let hungry = MODULE.replace("\"memory\") 1", "\"memory\") 1000");
        assert!(refused(wasm(&hungry)).contains("a memory of at most"));
        let large = " ".repeat(MODULE_BYTES_MAX + 1);
        assert!(refused(wasm(&large)).contains("4194305"));
        let greedy = v1::RegisterActionRequest {
            max_memory_bytes: Some(1 << 40),
            ..wasm(MODULE)
        };
        assert!(refused(greedy).contains("a memory limit from"));
    }

    #[test]
    fn numbers_out_of_their_range_are_refused() {
        let cases = [
            v1::RegisterActionRequest {
                timeout_ms: Some(0),
                ..user_action()
            },
            v1::RegisterActionRequest {
                timeout_ms: Some(LEASE_MS_MAX + 1),
                ..user_action()
            },
            v1::RegisterActionRequest {
                max_retries: Some(1_000),
                ..user_action()
            },
            v1::RegisterActionRequest {
                retry_delay_ms: Some(u64::MAX),
                ..user_action()
            },
        ];
        for request in cases {
            assert!(refused(request).contains("` from "));
        }
        let long = "x".repeat(MESSAGE_BYTES_MAX + 1);
        let request = v1::RegisterActionRequest {
            description: long,
            ..user_action()
        };
        assert!(refused(request).contains("a description of at most"));
    }

    #[test]
    fn what_only_wasm_has_is_refused_for_a_user_action() {
        assert!(refused(request(v1::ActionType::User, MODULE)).contains("`wasm_module`"));
        let request = v1::RegisterActionRequest {
            max_output_bytes: Some(9),
            ..user_action()
        };
        assert!(refused(request).contains("`max_output_bytes`"));
    }
}
