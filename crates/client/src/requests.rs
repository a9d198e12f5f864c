//! What the client adds to requests: the namespace, and the id that makes a retry safe.

use crate::pace::Pace;
use bytes::Bytes;
use flotilla_api::v1;
use std::time::Duration;
use uuid::Uuid;

/// A new request id: the 16 bytes of a UUID of version 7 (design rule 9).
///
/// The client generates one for each request without an id; generate one yourself to repeat a
/// request later, within five minutes: the cluster rejects a request that it does not remember if
/// the time in its id is longer ago. Other unique 16 bytes work too. Those of version 7 begin with
/// the time, so nodes store and expire neighboring ids together, which is cheaper.
#[must_use]
pub fn new_request_id() -> Bytes {
    Bytes::copy_from_slice(Uuid::now_v7().as_bytes())
}

/// A request that the client completes before sending it.
pub(crate) trait Prepare {
    /// Sets the namespace, if the caller left it open.
    fn prepare(&mut self, namespace: &str);

    /// The id by which the cluster recognizes a repeat, if it has one.
    fn id(&mut self) -> Option<&mut Bytes> {
        None
    }

    /// The namespace in which it acts; `None` if it acts on the cluster as a whole.
    fn namespace(&self) -> Option<&str> {
        None
    }

    /// How soon a node responds.
    fn pace(&self) -> Pace;
}

/// Requests that act in a namespace, by their pace.
macro_rules! prepare_namespace {
    ($pace:ident: $($request:ident)*) => {$(
        impl Prepare for v1::$request {
            fn prepare(&mut self, namespace: &str) {
                default_to(&mut self.namespace, namespace);
            }

            fn namespace(&self) -> Option<&str> {
                Some(&self.namespace)
            }

            fn pace(&self) -> Pace {
                Pace::$pace
            }
        }
    )*};
}

/// Reads that wait for as long as the named field says.
macro_rules! prepare_namespace_and_wait {
    ($($request:ident . $wait_ms:ident)*) => {$(
        impl Prepare for v1::$request {
            fn prepare(&mut self, namespace: &str) {
                default_to(&mut self.namespace, namespace);
            }

            fn namespace(&self) -> Option<&str> {
                Some(&self.namespace)
            }

            fn pace(&self) -> Pace {
                match self.$wait_ms {
                    0 => Pace::Prompt,
                    wait_ms => Pace::Waits(Duration::from_millis(wait_ms)),
                }
            }
        }
    )*};
}

/// Requests that act in a namespace and have an id in the named field. Their pace is `Prompt`,
/// unless the condition after `unless` holds.
macro_rules! prepare_namespace_and_id {
    ($($request:ident . $id:ident $(unless $is_slow:expr)?;)*) => {$(
        impl Prepare for v1::$request {
            fn prepare(&mut self, namespace: &str) {
                default_to(&mut self.namespace, namespace);
            }

            fn namespace(&self) -> Option<&str> {
                Some(&self.namespace)
            }

            fn id(&mut self) -> Option<&mut Bytes> {
                Some(&mut self.$id)
            }

            fn pace(&self) -> Pace {
                $(
                    let is_slow: fn(&Self) -> bool = $is_slow;
                    if is_slow(self) {
                        return Pace::Unknown;
                    }
                )?
                Pace::Prompt
            }
        }
    )*};
}

/// Requests that act on the cluster as a whole and have an id.
macro_rules! prepare_id {
    ($($request:ident)*) => {$(
        impl Prepare for v1::$request {
            fn prepare(&mut self, _namespace: &str) {}

            fn id(&mut self) -> Option<&mut Bytes> {
                Some(&mut self.request_id)
            }

            fn pace(&self) -> Pace {
                Pace::Prompt
            }
        }
    )*};
}

prepare_namespace! { Prompt:
    ValidateWorkflowRequest
    GetWorkflowRequest
    ListWorkflowsRequest
    ListRevisionsRequest
    GetStepOutputRequest
    GetPlanRequest
    ListRunsRequest
    GetHistoryRequest
    GetRunReportRequest
    ListInfoRequest
    WatchRunRequest
    GetScheduleRequest
    GetActionRequest
    ListActionsRequest
    ListActionRunsRequest
    ListDeadLettersRequest
    GetDeadLetterRequest
    ListWorkersRequest
    GetWorkerRequest
    GetKeyRequest
    ScanKeysRequest
    GetStreamRequest
    ListStreamsRequest
    GetGroupRequest
    ListGroupsRequest
    ListPendingRequest
    ListQuarantinedRequest
    GetTokenRequest
    ListTokensRequest
    ListBindingsRequest
    GetQuotaRequest
    GetUsageRequest
}

// Writes that the cluster recognizes by a token, or that may be repeated at any time.
prepare_namespace! { Unknown:
    RegisterRequest
    HeartbeatRequest
    CompleteRequest
    AcceptRequest
    FailRequest
    TouchRequest
    JoinGroupRequest
    TakeRecordsRequest
    AckRecordsRequest
    NackRecordsRequest
    TouchRecordsRequest
}

prepare_namespace_and_wait! {
    GetRunRequest.wait_ms
    GetActionRunRequest.wait_ms
    ReadRecordsRequest.block_ms
}

prepare_namespace_and_id! {
    CreateWorkflowRequest.request_id;
    CreateTokenRequest.request_id;
    RotateTokenRequest.request_id;
    RevokeTokenRequest.request_id;
    BindSubjectRequest.request_id;
    UnbindSubjectRequest.request_id;
    SetQuotaRequest.request_id;
    EnableWorkflowRequest.request_id;
    DisableWorkflowRequest.request_id;
    DeleteWorkflowRequest.request_id;
    StartRunRequest.request_id unless |request| request.wait;
    SignalRunRequest.request_id;
    AddInfoRequest.request_id;
    AddTaskInfoRequest.request_id;
    DecideApprovalRequest.request_id;
    CompleteStepRequest.request_id;
    ResumeRunRequest.request_id;
    RetryRunRequest.request_id;
    CancelRunRequest.request_id;
    InvalidateCacheRequest.request_id;
    ResetPlanRequest.request_id;
    RegisterActionRequest.request_id;
    DeleteActionRequest.request_id;
    EnableActionRequest.request_id;
    DisableActionRequest.request_id;
    InvokeActionRequest.request_id unless |request| request.wait;
    CancelActionRunRequest.request_id;
    // Several commands, which depend on what the node has applied.
    RequeueDeadLettersRequest.request_id unless |_| true;
    PurgeDeadLettersRequest.request_id unless |_| true;
    DrainRequest.request_id;
    DeregisterRequest.request_id;
    AwaitRequest.poll_id unless |_| true;
    SetKeyRequest.request_id;
    DeleteKeyRequest.request_id;
    CreateStreamRequest.request_id;
    TrimStreamRequest.request_id;
    DeleteStreamRequest.request_id;
    AppendRecordsRequest.request_id;
    CreateGroupRequest.request_id;
    DeleteGroupRequest.request_id;
    LeaveGroupRequest.request_id;
}

prepare_id! {
    CreateNamespaceRequest
    DeleteNamespaceRequest
    ReleaseQuarantinedRequest
    SetClusterSettingsRequest
    SetAccessRequest
    CreateClusterTokenRequest
    RotateClusterTokenRequest
    RevokeClusterTokenRequest
    BindClusterSubjectRequest
    UnbindClusterSubjectRequest
    BlockSubjectRequest
    UnblockSubjectRequest
    SetTreeQuotaRequest
    SetDefaultQuotaRequest
}

/// Requests without such fields, by their pace: those that change members name the member.
macro_rules! prepare_nothing {
    ($pace:ident: $($request:ident)*) => {$(
        impl Prepare for v1::$request {
            fn prepare(&mut self, _namespace: &str) {}

            fn pace(&self) -> Pace {
                Pace::$pace
            }
        }
    )*};
}

prepare_nothing! { Prompt:
    ListNamespacesRequest
    WhoAmIRequest
    GetAccessRequest
    GetClusterTokenRequest
    ListClusterTokensRequest
    ListClusterBindingsRequest
    ListBlocksRequest
    GetTreeQuotaRequest
    GetDefaultQuotaRequest
    GetTreeUsageRequest
}

// The status of another node is not the same, and a change of members takes its time.
prepare_nothing! { Unknown:
    GetStatusRequest
    GetNodeUsageRequest
    InspectNodeRequest
    AddLearnerRequest
    PromoteLearnerRequest
    RemoveNodeRequest
    TransferLeaderRequest
    DrainNodeRequest
    FormClusterRequest
    UndrainNodeRequest
    TakeSnapshotRequest
    BackupRequest
}

impl Prepare for v1::ReportTaskRequest {
    fn prepare(&mut self, _namespace: &str) {}

    fn id(&mut self) -> Option<&mut Bytes> {
        Some(&mut self.request_id)
    }

    fn pace(&self) -> Pace {
        Pace::Prompt
    }
}

fn default_to(field: &mut String, value: &str) {
    if field.is_empty() {
        value.clone_into(field);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_caller_set_is_kept() {
        let mut request = v1::CancelRunRequest {
            namespace: "mine".to_owned(),
            request_id: Bytes::from_static(&[7; 16]),
            ..v1::CancelRunRequest::default()
        };
        request.prepare("other");
        assert_eq!(request.namespace, "mine");
        assert_eq!(request.request_id, Bytes::from_static(&[7; 16]));
    }

    #[test]
    fn what_the_caller_left_open_is_set() {
        let mut request = v1::CancelRunRequest::default();
        request.prepare("other");
        assert_eq!(Prepare::namespace(&request), Some("other"));
        assert_eq!(request.id().map(|id| id.is_empty()), Some(true));
    }
}
