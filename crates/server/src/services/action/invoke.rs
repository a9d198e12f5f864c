//! Invoking a stand-alone action run (A2).

use super::wait;
use crate::access::CallContext;
use crate::convert;
use crate::deadline::Wait;
use crate::errors::Refusal;
use crate::limits::DELAY_MS_MAX;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, IdempotencyKey};
use flotilla_engine::{Command, InvokeAction, reply};
use tokio::time::Instant;

/// The priority when none is given (A2).
const PRIORITY_DEFAULT: u32 = 10;

/// Serves `InvokeAction`.
pub(super) async fn invoke(
    context: &CallContext,
    request: v1::InvokeActionRequest,
    deadline: Instant,
) -> Result<v1::InvokeActionResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let request_id = Some(request::request_id(&request.request_id)?);
    let is_waiting = request.wait;
    let body = invocation(request)?;
    let command = Command {
        request_id,
        scope: namespace.clone(),
        body,
    };
    let reply::ActionInvoked {
        action_run,
        is_existing,
    } = gateway.submit(command, deadline).await?;
    let run = if is_waiting {
        // The leader has applied the command; this node may be behind.
        gateway.catch_up(deadline).await?;
        let wait = Wait::until(deadline);
        Some(wait::until_ended(context, &namespace, action_run, wait).await?)
    } else {
        None
    };
    Ok(v1::InvokeActionResponse {
        action_run_id: action_run.to_string(),
        existing: is_existing,
        run: run.map(convert::action_run::message),
    })
}

fn invocation(request: v1::InvokeActionRequest) -> Result<InvokeAction, Refusal> {
    request::labels(&request.labels)?;
    if request.delay_ms > DELAY_MS_MAX {
        let message = format!(
            "expected a delay of at most {DELAY_MS_MAX} ms, but it is {} ms",
            request.delay_ms
        );
        return Err(Refusal::invalid("delay_ms", message));
    }
    Ok(InvokeAction {
        name: request::name("name", ActionName::new(request.name))?,
        input: request::json(&request.input, "input", "{}")?,
        priority: priority(request.priority)?,
        delay_ms: request.delay_ms,
        labels: request.labels,
        idempotency_key: request::optional(
            "idempotency_key",
            request.idempotency_key,
            IdempotencyKey::new,
        )?,
    })
}

fn priority(request: Option<u32>) -> Result<u8, Refusal> {
    let priority = request.unwrap_or(PRIORITY_DEFAULT);
    u8::try_from(priority).map_err(|_| {
        let message = format!("expected a priority from 0 to 255, but it is {priority}");
        Refusal::invalid("priority", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> v1::InvokeActionRequest {
        v1::InvokeActionRequest {
            name: "charge".to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn what_is_not_given_has_its_default() {
        let invocation = invocation(request()).unwrap();
        assert_eq!((invocation.priority, invocation.delay_ms), (10, 0));
        assert_eq!(invocation.input.as_str(), "{}");
        assert_eq!(invocation.idempotency_key, None);
    }

    #[test]
    fn numbers_out_of_their_range_are_refused() {
        assert_eq!(priority(Some(255)), Ok(255));
        assert!(priority(Some(256)).is_err());
        let far = v1::InvokeActionRequest {
            delay_ms: DELAY_MS_MAX + 1,
            ..request()
        };
        assert!(invocation(far).is_err());
    }
}
