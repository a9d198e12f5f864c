//! Setting and deleting keys (A40).

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::KvKey;
use flotilla_engine::{Command, DeleteKey, SetCondition, SetKey, reply};
use std::num::NonZeroU64;
use tokio::time::Instant;

/// Serves `SetKey`.
pub(super) async fn set(
    context: &CallContext,
    request: v1::SetKeyRequest,
    deadline: Instant,
) -> Result<v1::SetKeyResponse, Refusal> {
    let command = Command {
        // A retried conditional write without a request id would conflict with itself.
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: write(request)?,
    };
    let reply::KeySet { version } = context.gateway.submit(command, deadline).await?;
    Ok(v1::SetKeyResponse { version })
}

fn write(request: v1::SetKeyRequest) -> Result<SetKey, Refusal> {
    let condition = match (request.if_absent, request.if_version) {
        (false, None) => SetCondition::Always,
        (true, None) => SetCondition::IfAbsent,
        (false, Some(version)) => SetCondition::IfVersion(version),
        (true, Some(_)) => {
            let message = "expected one condition, but `if_absent` and `if_version` are both given";
            return Err(Refusal::invalid("if_version", message));
        }
    };
    let ttl_ms = match request.ttl_ms.map(NonZeroU64::new) {
        None => None,
        Some(Some(ttl_ms)) => Some(ttl_ms),
        Some(None) => {
            let message = "expected a time to live above 0 ms, but it is 0 ms";
            return Err(Refusal::invalid("ttl_ms", message));
        }
    };
    Ok(SetKey {
        key: request::name("key", KvKey::new(request.key))?,
        value: Vec::from(request.value).into(),
        ttl_ms,
        condition,
    })
}

/// Serves `DeleteKey`.
pub(super) async fn delete(
    context: &CallContext,
    request: v1::DeleteKeyRequest,
    deadline: Instant,
) -> Result<v1::DeleteKeyResponse, Refusal> {
    let key = request::name("key", KvKey::new(request.key))?;
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: DeleteKey { key },
    };
    let reply::Deleted { is_found } = context.gateway.submit(command, deadline).await?;
    Ok(v1::DeleteKeyResponse { deleted: is_found })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> v1::SetKeyRequest {
        v1::SetKeyRequest {
            key: "k".to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn a_write_has_at_most_one_condition_and_a_real_time_to_live() {
        assert_eq!(write(request()).unwrap().condition, SetCondition::Always);
        let absent = v1::SetKeyRequest {
            if_absent: true,
            ..request()
        };
        assert_eq!(
            write(absent.clone()).unwrap().condition,
            SetCondition::IfAbsent
        );
        let both = v1::SetKeyRequest {
            if_version: Some(0),
            ..absent
        };
        assert!(write(both).is_err());
        let dead = v1::SetKeyRequest {
            ttl_ms: Some(0),
            ..request()
        };
        assert!(write(dead).is_err());
    }
}
