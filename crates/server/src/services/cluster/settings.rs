//! Shows and changes the settings of the cluster (A42).

use crate::access::CallContext;
use crate::errors::Refusal;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::{SetClusterSettings, reply, view};
use tokio::time::Instant;

/// The settings as this node has applied them; `None` while it must not read the state.
pub(super) fn read(context: &CallContext) -> Option<v1::ClusterSettings> {
    let settings = context
        .gateway
        .home()
        .read_here(view::cluster_settings)
        .ok()?;
    Some(v1::ClusterSettings {
        max_request_ids: settings.requests_max,
    })
}

/// Changes settings.
pub(super) async fn set(
    context: &CallContext,
    request: v1::SetClusterSettingsRequest,
    deadline: Instant,
) -> Result<v1::SetClusterSettingsResponse, Refusal> {
    if request.max_request_ids.is_none() {
        let message = "expected at least one setting, but the request gives none";
        return Err(Refusal::invalid("max_request_ids", message));
    }
    let body = SetClusterSettings {
        requests_max: request.max_request_ids,
    };
    body.check()?;
    let command = request::cluster_command(&request.request_id, body)?;
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::SetClusterSettingsResponse {})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{StillNode, deadline};
    use flotilla_engine::limits::{REQUESTS_MAX_DEFAULT, REQUESTS_MAX_LOWEST};

    async fn set_max(node: &StillNode, max_request_ids: Option<u64>) -> Result<(), Refusal> {
        let request = v1::SetClusterSettingsRequest {
            max_request_ids,
            ..Default::default()
        };
        set(&node.call, request, deadline()).await.map(|_| ())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_setting_holds_from_its_change_on_and_a_wrong_value_changes_nothing() {
        let node = StillNode::start().await;
        let shown = || read(&node.call).unwrap().max_request_ids;
        assert_eq!(shown(), REQUESTS_MAX_DEFAULT);
        set_max(&node, Some(9_000_000)).await.unwrap();
        assert_eq!(shown(), 9_000_000);
        let low = set_max(&node, Some(REQUESTS_MAX_LOWEST - 1)).await;
        let low = low.unwrap_err().to_string();
        assert!(
            low.contains("`max_request_ids` to be from 100000 to"),
            "{low}"
        );
        let none = set_max(&node, None).await.unwrap_err().to_string();
        assert!(none.contains("at least one setting"), "{none}");
        assert_eq!(shown(), 9_000_000);
    }
}
