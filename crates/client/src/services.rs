//! All unary calls of the services.

use crate::call::REPLY_BYTES_MAX;
use crate::client::Client;
use crate::error::ClientError;
use crate::retry::Intent;
use flotilla_api::v1;
use flotilla_api::v1::access_service_client::AccessServiceClient;
use flotilla_api::v1::action_service_client::ActionServiceClient;
use flotilla_api::v1::cluster_service_client::ClusterServiceClient;
use flotilla_api::v1::kv_service_client::KvServiceClient;
use flotilla_api::v1::namespace_service_client::NamespaceServiceClient;
use flotilla_api::v1::plan_service_client::PlanServiceClient;
use flotilla_api::v1::quota_service_client::QuotaServiceClient;
use flotilla_api::v1::stream_service_client::StreamServiceClient;
use flotilla_api::v1::worker_service_client::WorkerServiceClient;
use flotilla_api::v1::workflow_service_client::WorkflowServiceClient;

/// Generates a method for each call: `Intent method(Request) -> Reply = rpc;`.
macro_rules! calls {
    ($service:ident: $(
        $(#[$doc:meta])*
        $intent:ident $method:ident($request:ident) -> $reply:ident = $rpc:ident;
    )*) => {
        impl Client {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`ClientError`]; its kind says what to do about it.
            pub async fn $method(
                &self,
                request: v1::$request,
            ) -> Result<v1::$reply, ClientError> {
                self.call(Intent::$intent, request, |channel, request| async move {
                    let client = $service::new(channel);
                    client.max_decoding_message_size(REPLY_BYTES_MAX).$rpc(request).await
                })
                .await
            }
        )*}
    };
}

calls! { WorkflowServiceClient:
    /// Stores a definition (W5).
    Write create_workflow(CreateWorkflowRequest) -> CreateWorkflowResponse = create_workflow;
    /// Validates a definition against the registered actions and workflows (W6).
    Read validate_workflow(ValidateWorkflowRequest) -> ValidateWorkflowResponse = validate_workflow;
    /// Returns one definition.
    Read get_workflow(GetWorkflowRequest) -> Workflow = get_workflow;
    /// Lists workflows, by page.
    Read list_workflows(ListWorkflowsRequest) -> ListWorkflowsResponse = list_workflows;
    /// Lists the revisions of a workflow, by page (W5).
    Read list_revisions(ListRevisionsRequest) -> ListRevisionsResponse = list_revisions;
    /// Accepts new runs again (W42).
    Write enable_workflow(EnableWorkflowRequest) -> EnableWorkflowResponse = enable_workflow;
    /// Refuses new runs (W42).
    Write disable_workflow(DisableWorkflowRequest) -> DisableWorkflowResponse = disable_workflow;
    /// Starts a run (W20).
    Write start_run(StartRunRequest) -> StartRunResponse = start_run;
    /// Returns a run.
    Read get_run(GetRunRequest) -> Run = get_run;
    /// Returns the output of a step, which a run may leave out if it is large.
    Read get_step_output(GetStepOutputRequest) -> GetStepOutputResponse = get_step_output;
    /// Lists runs, newest first, by page (W22).
    Read list_runs(ListRunsRequest) -> ListRunsResponse = list_runs;
    /// Returns a page of a run's history (W23).
    Read get_history(GetHistoryRequest) -> GetHistoryResponse = get_history;
    /// Adds an info entry to an open run (W92).
    Write add_info(AddInfoRequest) -> AddInfoResponse = add_info;
    /// Returns a page of a run's info entries (W92).
    Read list_info(ListInfoRequest) -> ListInfoResponse = list_info;
    /// Returns a page of the report of a run (W87).
    Read get_run_report(GetRunReportRequest) -> GetRunReportResponse = get_run_report;
    /// Approves or rejects what a step asks for (W61).
    Write decide_approval(DecideApprovalRequest) -> DecideApprovalResponse = decide_approval;
    /// Reports the outcome of a step's accepted task (W75).
    Write complete_step(CompleteStepRequest) -> CompleteStepResponse = complete_step;
    /// Continues a run that has failed, timed out or was cancelled (W89).
    Write resume_run(ResumeRunRequest) -> ResumeRunResponse = resume_run;
    /// Starts a new run to replace an ended run (W90).
    Write retry_run(RetryRunRequest) -> StartRunResponse = retry_run;
    /// Delivers a signal (W19).
    Write signal_run(SignalRunRequest) -> SignalRunResponse = signal_run;
    /// Cancels a run and its child runs (W18).
    Write cancel_run(CancelRunRequest) -> CancelRunResponse = cancel_run;
    /// Returns a workflow's schedule with its next firings (W40).
    Read get_schedule(GetScheduleRequest) -> Schedule = get_schedule;
    /// Drops cached plan results that list an event (W37).
    Write invalidate_cache(InvalidateCacheRequest) -> InvalidateCacheResponse = invalidate_cache;
    /// Deletes a workflow that has no runs (W5).
    Write delete_workflow(DeleteWorkflowRequest) -> DeleteWorkflowResponse = delete_workflow;
}

calls! { PlanServiceClient:
    /// Returns the state of a plan's executors (W31).
    Read get_plan(GetPlanRequest) -> PlanStatus = get_plan;
    /// Resets the state of a plan's executors (W31).
    Write reset_plan(ResetPlanRequest) -> ResetPlanResponse = reset_plan;
}

calls! { ActionServiceClient:
    /// Registers an action or replaces its fields (A1).
    Write register_action(RegisterActionRequest) -> RegisterActionResponse = register_action;
    /// Returns one action.
    Read get_action(GetActionRequest) -> Action = get_action;
    /// Lists actions, by page.
    Read list_actions(ListActionsRequest) -> ListActionsResponse = list_actions;
    /// Deletes an action (A1).
    Write delete_action(DeleteActionRequest) -> DeleteActionResponse = delete_action;
    /// Accepts invocations of an action again.
    Write enable_action(EnableActionRequest) -> EnableActionResponse = enable_action;
    /// Rejects invocations of an action.
    Write disable_action(DisableActionRequest) -> DisableActionResponse = disable_action;
    /// Starts a stand-alone action run (A2). With `wait`, it returns when the action run has ended,
    /// or shortly before the client's timeout.
    Write invoke_action(InvokeActionRequest) -> InvokeActionResponse = invoke_action;
    /// Returns an action run, with `wait_ms` once it has ended; the client's timeout must be
    /// longer.
    Read get_action_run(GetActionRunRequest) -> ActionRun = get_action_run;
    /// Cancels a stand-alone action run (A2).
    Write cancel_action_run(CancelActionRunRequest) -> CancelActionRunResponse = cancel_action_run;
    /// Lists an action's runs, newest first, by page.
    Read list_action_runs(ListActionRunsRequest) -> ListActionRunsResponse = list_action_runs;
    /// Reports the outcome of an accepted task (W38).
    Write report_task(ReportTaskRequest) -> ReportTaskResponse = report_task;
    /// Lists an action's dead letters, newest first, by page (A6).
    Read list_dead_letters(ListDeadLettersRequest) -> ListDeadLettersResponse = list_dead_letters;
    /// Returns a dead letter with its input.
    Read get_dead_letter(GetDeadLetterRequest) -> DeadLetter = get_dead_letter;
    /// Runs dead letters again as stand-alone action runs (A6).
    Write requeue_dead_letters(RequeueDeadLettersRequest) -> RequeueDeadLettersResponse = requeue_dead_letters;
    /// Deletes dead letters (A6).
    Write purge_dead_letters(PurgeDeadLettersRequest) -> PurgeDeadLettersResponse = purge_dead_letters;
}

calls! { WorkerServiceClient:
    /// Adds a worker to the registry (A20). [`Worker`](crate::Worker) calls it automatically.
    Write register_worker(RegisterRequest) -> RegisterResponse = register;
    /// Keeps a worker healthy (A20).
    Write heartbeat_worker(HeartbeatRequest) -> HeartbeatResponse = heartbeat;
    /// Lets a worker finish the tasks that it holds and gives it no new ones (A21).
    Write drain_worker(DrainRequest) -> DrainResponse = drain;
    /// Removes a worker from the registry.
    Write deregister_worker(DeregisterRequest) -> DeregisterResponse = deregister;
    /// Lists workers, by page.
    Read list_workers(ListWorkersRequest) -> ListWorkersResponse = list_workers;
    /// Returns one worker.
    Read get_worker(GetWorkerRequest) -> WorkerRecord = get_worker;
    /// Waits for tasks (A22); the client's timeout must be longer than the wait.
    Write await_tasks(AwaitRequest) -> AwaitResponse = r#await;
    /// Ends tasks with outcomes (A4).
    Write complete_tasks(CompleteRequest) -> CompleteResponse = complete;
    /// Accepts tasks, whose outcomes come later by reports (W38).
    Write accept_tasks(AcceptRequest) -> AcceptResponse = accept;
    /// Ends tasks with errors (A5).
    Write fail_tasks(FailRequest) -> FailResponse = fail;
    /// Extends leases (A4).
    Write touch_tasks(TouchRequest) -> TouchResponse = touch;
    /// Adds an info entry to the run of a task (W92).
    Write add_task_info(AddTaskInfoRequest) -> AddTaskInfoResponse = add_task_info;
}

calls! { ClusterServiceClient:
    /// Returns the cluster's status, as seen by the node that answers.
    Read get_status(GetStatusRequest) -> ClusterStatus = get_status;
    /// Returns the resource usage of the answering node and its counters since it started.
    Read get_node_usage(GetNodeUsageRequest) -> NodeUsage = get_node_usage;
    /// Adds a node as a learner.
    Write add_learner(AddLearnerRequest) -> AddLearnerResponse = add_learner;
    /// Makes a learner a voter once it has caught up.
    Write promote_learner(PromoteLearnerRequest) -> PromoteLearnerResponse = promote_learner;
    /// Removes a member permanently.
    Write remove_node(RemoveNodeRequest) -> RemoveNodeResponse = remove_node;
    /// Returns what waits on a member.
    Read inspect_node(InspectNodeRequest) -> NodeInspection = inspect_node;
    /// Makes a member take a snapshot.
    Write take_snapshot(TakeSnapshotRequest) -> TakeSnapshotResponse = take_snapshot;
    /// Transfers leadership to another voter.
    Write transfer_leader(TransferLeaderRequest) -> TransferLeaderResponse = transfer_leader;
    /// Lets the first members form a new cluster, and waits until the node belongs to it, and then a few seconds for a leader.
    Write form_cluster(FormClusterRequest) -> FormClusterResponse = form_cluster;
    /// Drains a member: it does not lead, and ends waiting calls.
    Write drain_node(DrainNodeRequest) -> DrainNodeResponse = drain_node;
    /// Ends the drain of a member.
    Write undrain_node(UndrainNodeRequest) -> UndrainNodeResponse = undrain_node;
    /// Lists quarantined items, by page, or those with a given name.
    Read list_quarantined(ListQuarantinedRequest) -> ListQuarantinedResponse = list_quarantined;
    /// Releases a quarantined item.
    Write release_quarantined(ReleaseQuarantinedRequest) -> ReleaseQuarantinedResponse = release_quarantined;
    /// Changes settings of the cluster.
    Write set_cluster_settings(SetClusterSettingsRequest) -> SetClusterSettingsResponse = set_cluster_settings;
}

calls! { KvServiceClient:
    /// Returns one key (A40).
    Read get_key(GetKeyRequest) -> GetKeyResponse = get_key;
    /// Sets a key.
    Write set_key(SetKeyRequest) -> SetKeyResponse = set_key;
    /// Deletes a key.
    Write delete_key(DeleteKeyRequest) -> DeleteKeyResponse = delete_key;
    /// Lists the keys with a prefix, by page.
    Read scan_keys(ScanKeysRequest) -> ScanKeysResponse = scan_keys;
}

calls! { AccessServiceClient:
    /// Returns who the caller is, and what it may do.
    Read who_am_i(WhoAmIRequest) -> WhoAmIResponse = who_am_i;
    /// Returns whether callers need a credential (X1).
    Read get_access(GetAccessRequest) -> Access = get_access;
    /// Opens or closes the cluster (X5).
    Write set_access(SetAccessRequest) -> Access = set_access;
    /// Creates an API token of a namespace (X10).
    Write create_token(CreateTokenRequest) -> Token = create_token;
    /// Returns an API token of a namespace.
    Read get_token(GetTokenRequest) -> Token = get_token;
    /// Lists the API tokens of a namespace, by page.
    Read list_tokens(ListTokensRequest) -> ListTokensResponse = list_tokens;
    /// Gives an API token of a namespace another secret.
    Write rotate_token(RotateTokenRequest) -> Token = rotate_token;
    /// Ends an API token of a namespace.
    Write revoke_token(RevokeTokenRequest) -> RevokeTokenResponse = revoke_token;
    /// Creates an API token of the cluster (X10).
    Write create_cluster_token(CreateClusterTokenRequest) -> Token = create_cluster_token;
    /// Returns an API token of the cluster.
    Read get_cluster_token(GetClusterTokenRequest) -> Token = get_cluster_token;
    /// Lists the API tokens of the cluster, by page.
    Read list_cluster_tokens(ListClusterTokensRequest) -> ListTokensResponse = list_cluster_tokens;
    /// Gives an API token of the cluster another secret.
    Write rotate_cluster_token(RotateClusterTokenRequest) -> Token = rotate_cluster_token;
    /// Ends an API token of the cluster.
    Write revoke_cluster_token(RevokeClusterTokenRequest) -> RevokeTokenResponse = revoke_cluster_token;
    /// Gives a subject rights in a namespace (X17).
    Write bind_subject(BindSubjectRequest) -> BindSubjectResponse = bind_subject;
    /// Takes back the rights of a subject in a namespace.
    Write unbind_subject(UnbindSubjectRequest) -> UnbindSubjectResponse = unbind_subject;
    /// Lists the bindings of a namespace, by page.
    Read list_bindings(ListBindingsRequest) -> ListBindingsResponse = list_bindings;
    /// Gives a subject rights in the cluster as a whole.
    Write bind_cluster_subject(BindClusterSubjectRequest) -> BindSubjectResponse = bind_cluster_subject;
    /// Takes back the rights of a subject in the cluster as a whole.
    Write unbind_cluster_subject(UnbindClusterSubjectRequest) -> UnbindSubjectResponse = unbind_cluster_subject;
    /// Lists the bindings of the cluster as a whole, by page.
    Read list_cluster_bindings(ListClusterBindingsRequest) -> ListBindingsResponse = list_cluster_bindings;
    /// Refuses a subject, whatever bindings it has (X12).
    Write block_subject(BlockSubjectRequest) -> BlockSubjectResponse = block_subject;
    /// Ends the block of a subject.
    Write unblock_subject(UnblockSubjectRequest) -> UnblockSubjectResponse = unblock_subject;
    /// Lists the blocked subjects, by page.
    Read list_blocks(ListBlocksRequest) -> ListBlocksResponse = list_blocks;
}

calls! { NamespaceServiceClient:
    /// Creates a namespace (A41).
    Write create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse = create_namespace;
    /// Lists namespaces, by page.
    Read list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse = list_namespaces;
    /// Deletes an empty namespace.
    Write delete_namespace(DeleteNamespaceRequest) -> DeleteNamespaceResponse = delete_namespace;
}

calls! { QuotaServiceClient:
    /// Returns the quota of a namespace (X37).
    Read get_quota(GetQuotaRequest) -> Quota = get_quota;
    /// Replaces the quota of a namespace.
    Write set_quota(SetQuotaRequest) -> Quota = set_quota;
    /// Returns the quota of a tree of namespaces.
    Read get_tree_quota(GetTreeQuotaRequest) -> Quota = get_tree_quota;
    /// Replaces the quota of a tree of namespaces.
    Write set_tree_quota(SetTreeQuotaRequest) -> Quota = set_tree_quota;
    /// Returns the quota that new namespaces begin with.
    Read get_default_quota(GetDefaultQuotaRequest) -> Quota = get_default_quota;
    /// Replaces the quota that new namespaces begin with.
    Write set_default_quota(SetDefaultQuotaRequest) -> Quota = set_default_quota;
    /// Returns what a namespace uses.
    Read get_usage(GetUsageRequest) -> Usage = get_usage;
    /// Returns what the namespaces of a tree use together.
    Read get_tree_usage(GetTreeUsageRequest) -> Usage = get_tree_usage;
}

calls! { StreamServiceClient:
    /// Creates a stream (A30).
    Write create_stream(CreateStreamRequest) -> CreateStreamResponse = create_stream;
    /// Returns one stream.
    Read get_stream(GetStreamRequest) -> StreamInfo = get_stream;
    /// Lists streams, by page.
    Read list_streams(ListStreamsRequest) -> ListStreamsResponse = list_streams;
    /// Deletes a stream's oldest records.
    Write trim_stream(TrimStreamRequest) -> TrimStreamResponse = trim_stream;
    /// Deletes a stream and its groups.
    Write delete_stream(DeleteStreamRequest) -> DeleteStreamResponse = delete_stream;
    /// Appends records (A30).
    Write append_records(AppendRecordsRequest) -> AppendRecordsResponse = append_records;
    /// Reads records; the client's timeout must be longer than the wait.
    Read read_records(ReadRecordsRequest) -> ReadRecordsResponse = read_records;
    /// Creates a consumer group (A31).
    Write create_group(CreateGroupRequest) -> CreateGroupResponse = create_group;
    /// Returns one group.
    Read get_group(GetGroupRequest) -> GroupInfo = get_group;
    /// Lists a stream's groups, by page.
    Read list_groups(ListGroupsRequest) -> ListGroupsResponse = list_groups;
    /// Deletes a consumer group.
    Write delete_group(DeleteGroupRequest) -> DeleteGroupResponse = delete_group;
    /// Adds a consumer to a group or renews its membership. [`StreamWorker`](crate::StreamWorker)
    /// calls it automatically.
    Write join_group(JoinGroupRequest) -> JoinGroupResponse = join_group;
    /// Removes a consumer from a group.
    Write leave_group(LeaveGroupRequest) -> LeaveGroupResponse = leave_group;
    /// Waits for records (A31); the client's timeout must be longer than the wait.
    Write take_records(TakeRecordsRequest) -> TakeRecordsResponse = take_records;
    /// Marks records as consumed.
    Write ack_records(AckRecordsRequest) -> AckRecordsResponse = ack_records;
    /// Returns records for redelivery.
    Write nack_records(NackRecordsRequest) -> NackRecordsResponse = nack_records;
    /// Extends the ack deadline of records.
    Write touch_records(TouchRecordsRequest) -> TouchRecordsResponse = touch_records;
    /// Lists the unacknowledged deliveries of a group.
    Read list_pending(ListPendingRequest) -> ListPendingResponse = list_pending;
}
