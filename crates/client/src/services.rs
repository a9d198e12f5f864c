//! Every unary call of the services.

use crate::call::REPLY_BYTES_MAX;
use crate::client::Client;
use crate::error::ClientError;
use crate::requests::Prepare;
use crate::retry::Intent;
use flotilla_api::v1;
use flotilla_api::v1::action_service_client::ActionServiceClient;
use flotilla_api::v1::cluster_service_client::ClusterServiceClient;
use flotilla_api::v1::kv_service_client::KvServiceClient;
use flotilla_api::v1::namespace_service_client::NamespaceServiceClient;
use flotilla_api::v1::plan_service_client::PlanServiceClient;
use flotilla_api::v1::stream_service_client::StreamServiceClient;
use flotilla_api::v1::worker_service_client::WorkerServiceClient;
use flotilla_api::v1::workflow_service_client::WorkflowServiceClient;

/// Makes a method for each call: `Intent method(Request) -> Reply = rpc;`.
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
                mut request: v1::$request,
            ) -> Result<v1::$reply, ClientError> {
                request.prepare(self.namespace());
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
    /// Validates a definition against what is registered (W6).
    Read validate_workflow(ValidateWorkflowRequest) -> ValidateWorkflowResponse = validate_workflow;
    /// Reads one definition.
    Read get_workflow(GetWorkflowRequest) -> Workflow = get_workflow;
    /// Reads a page of workflows.
    Read list_workflows(ListWorkflowsRequest) -> ListWorkflowsResponse = list_workflows;
    /// Lets runs start again (W42).
    Write enable_workflow(EnableWorkflowRequest) -> EnableWorkflowResponse = enable_workflow;
    /// Refuses new starts (W42).
    Write disable_workflow(DisableWorkflowRequest) -> DisableWorkflowResponse = disable_workflow;
    /// Starts a run (W20).
    Write start_run(StartRunRequest) -> StartRunResponse = start_run;
    /// Reads a run.
    Read get_run(GetRunRequest) -> Run = get_run;
    /// Reads a page of runs, newest first (W22).
    Read list_runs(ListRunsRequest) -> ListRunsResponse = list_runs;
    /// Reads a part of a run's history (W23).
    Read get_history(GetHistoryRequest) -> GetHistoryResponse = get_history;
    /// Delivers a signal (W19).
    Write signal_run(SignalRunRequest) -> SignalRunResponse = signal_run;
    /// Cancels a run and its children (W18).
    Write cancel_run(CancelRunRequest) -> CancelRunResponse = cancel_run;
    /// Reads a workflow's schedule, with its next firings (W40).
    Read get_schedule(GetScheduleRequest) -> Schedule = get_schedule;
    /// Drops the cached plan results that name an event (W37).
    Write invalidate_cache(InvalidateCacheRequest) -> InvalidateCacheResponse = invalidate_cache;
}

calls! { PlanServiceClient:
    /// Reads what is remembered of a plan's executors (W31).
    Read get_plan(GetPlanRequest) -> PlanStatus = get_plan;
    /// Gives a plan's executors a fresh chance (W31).
    Write reset_plan(ResetPlanRequest) -> ResetPlanResponse = reset_plan;
}

calls! { ActionServiceClient:
    /// Registers an action or replaces its fields (A1).
    Write register_action(RegisterActionRequest) -> RegisterActionResponse = register_action;
    /// Reads one action.
    Read get_action(GetActionRequest) -> Action = get_action;
    /// Reads a page of actions.
    Read list_actions(ListActionsRequest) -> ListActionsResponse = list_actions;
    /// Deletes an action (A1).
    Write delete_action(DeleteActionRequest) -> DeleteActionResponse = delete_action;
    /// Lets an action be invoked again.
    Write enable_action(EnableActionRequest) -> EnableActionResponse = enable_action;
    /// Refuses invocations of an action.
    Write disable_action(DisableActionRequest) -> DisableActionResponse = disable_action;
    /// Starts an action run outside any workflow (A2). With `wait`, it answers when the action run
    /// has ended or shortly before the client's timeout.
    Write invoke_action(InvokeActionRequest) -> InvokeActionResponse = invoke_action;
    /// Reads an action run, with `wait_ms` when it has ended; the client's timeout must be longer.
    Read get_action_run(GetActionRunRequest) -> ActionRun = get_action_run;
    /// Reads a page of an action's runs, newest first.
    Read list_action_runs(ListActionRunsRequest) -> ListActionRunsResponse = list_action_runs;
    /// Gives the outcome of a task that its worker has accepted (W38).
    Write report_task(ReportTaskRequest) -> ReportTaskResponse = report_task;
    /// Reads a page of an action's dead letters, newest first (A6).
    Read list_dead_letters(ListDeadLettersRequest) -> ListDeadLettersResponse = list_dead_letters;
    /// Reads a dead letter with its input.
    Read get_dead_letter(GetDeadLetterRequest) -> DeadLetter = get_dead_letter;
    /// Runs dead letters again, outside any workflow (A6).
    Write requeue_dead_letters(RequeueDeadLettersRequest) -> RequeueDeadLettersResponse = requeue_dead_letters;
    /// Drops dead letters (A6).
    Write purge_dead_letters(PurgeDeadLettersRequest) -> PurgeDeadLettersResponse = purge_dead_letters;
}

calls! { WorkerServiceClient:
    /// Enters a worker into the registry (A20). [`Worker`](crate::Worker) does it by itself.
    Write register_worker(RegisterRequest) -> RegisterResponse = register;
    /// Keeps a worker healthy (A20).
    Write heartbeat_worker(HeartbeatRequest) -> HeartbeatResponse = heartbeat;
    /// Lets a worker finish what it has and gives it nothing new (A21).
    Write drain_worker(DrainRequest) -> DrainResponse = drain;
    /// Removes a worker from the registry.
    Write deregister_worker(DeregisterRequest) -> DeregisterResponse = deregister;
    /// Reads a page of workers.
    Read list_workers(ListWorkersRequest) -> ListWorkersResponse = list_workers;
    /// Reads one worker.
    Read get_worker(GetWorkerRequest) -> WorkerRecord = get_worker;
    /// Waits for tasks (A22); the client's timeout must be longer than the wait.
    Write await_tasks(AwaitRequest) -> AwaitResponse = r#await;
    /// Ends tasks with outcomes (A4).
    Write complete_tasks(CompleteRequest) -> CompleteResponse = complete;
    /// Says that the outcomes of tasks come later, by reports (W38).
    Write accept_tasks(AcceptRequest) -> AcceptResponse = accept;
    /// Ends tasks with errors (A5).
    Write fail_tasks(FailRequest) -> FailResponse = fail;
    /// Extends leases (A4).
    Write touch_tasks(TouchRequest) -> TouchResponse = touch;
}

calls! { ClusterServiceClient:
    /// Reads the cluster's status as the node that answers sees it.
    Read get_status(GetStatusRequest) -> ClusterStatus = get_status;
    /// Reads what the node that answers uses, and what it has counted since it was started.
    Read get_node_usage(GetNodeUsageRequest) -> NodeUsage = get_node_usage;
    /// Takes in a node without a vote.
    Write add_learner(AddLearnerRequest) -> AddLearnerResponse = add_learner;
    /// Gives a learner a vote, once it has caught up.
    Write promote_learner(PromoteLearnerRequest) -> PromoteLearnerResponse = promote_learner;
    /// Takes a member out for good.
    Write remove_node(RemoveNodeRequest) -> RemoveNodeResponse = remove_node;
    /// Has a member make a snapshot.
    Write take_snapshot(TakeSnapshotRequest) -> TakeSnapshotResponse = take_snapshot;
    /// Has another voter lead.
    Write transfer_leader(TransferLeaderRequest) -> TransferLeaderResponse = transfer_leader;
    /// Reads a page of what is set aside after a bug, or what of it has one name.
    Read list_quarantined(ListQuarantinedRequest) -> ListQuarantinedResponse = list_quarantined;
    /// Takes up something that is set aside.
    Write retry_quarantined(RetryQuarantinedRequest) -> RetryQuarantinedResponse = retry_quarantined;
}

calls! { KvServiceClient:
    /// Reads one key (A40).
    Read get_key(GetKeyRequest) -> GetKeyResponse = get_key;
    /// Sets a key.
    Write set_key(SetKeyRequest) -> SetKeyResponse = set_key;
    /// Deletes a key.
    Write delete_key(DeleteKeyRequest) -> DeleteKeyResponse = delete_key;
    /// Reads a page of the keys that begin with a prefix.
    Read scan_keys(ScanKeysRequest) -> ScanKeysResponse = scan_keys;
}

calls! { NamespaceServiceClient:
    /// Creates a namespace (A41).
    Write create_namespace(CreateNamespaceRequest) -> CreateNamespaceResponse = create_namespace;
    /// Reads a page of namespaces.
    Read list_namespaces(ListNamespacesRequest) -> ListNamespacesResponse = list_namespaces;
    /// Deletes an empty namespace.
    Write delete_namespace(DeleteNamespaceRequest) -> DeleteNamespaceResponse = delete_namespace;
}

calls! { StreamServiceClient:
    /// Creates a stream (A30).
    Write create_stream(CreateStreamRequest) -> CreateStreamResponse = create_stream;
    /// Reads about one stream.
    Read get_stream(GetStreamRequest) -> StreamInfo = get_stream;
    /// Reads a page of streams.
    Read list_streams(ListStreamsRequest) -> ListStreamsResponse = list_streams;
    /// Gives up a stream's oldest records.
    Write trim_stream(TrimStreamRequest) -> TrimStreamResponse = trim_stream;
    /// Deletes a stream with its groups.
    Write delete_stream(DeleteStreamRequest) -> DeleteStreamResponse = delete_stream;
    /// Appends records (A30).
    Write append_records(AppendRecordsRequest) -> AppendRecordsResponse = append_records;
    /// Reads records; the client's timeout must be longer than the wait.
    Read read_records(ReadRecordsRequest) -> ReadRecordsResponse = read_records;
    /// Creates a consumer group (A31).
    Write create_group(CreateGroupRequest) -> CreateGroupResponse = create_group;
    /// Reads about one group.
    Read get_group(GetGroupRequest) -> GroupInfo = get_group;
    /// Reads a page of a stream's groups.
    Read list_groups(ListGroupsRequest) -> ListGroupsResponse = list_groups;
    /// Deletes a consumer group.
    Write delete_group(DeleteGroupRequest) -> DeleteGroupResponse = delete_group;
    /// Adds a consumer to a group and keeps it there. [`StreamWorker`](crate::StreamWorker) does it
    /// by itself.
    Write join_group(JoinGroupRequest) -> JoinGroupResponse = join_group;
    /// Takes a consumer out of a group.
    Write leave_group(LeaveGroupRequest) -> LeaveGroupResponse = leave_group;
    /// Waits for records (A31); the client's timeout must be longer than the wait.
    Write take_records(TakeRecordsRequest) -> TakeRecordsResponse = take_records;
    /// Marks records as consumed.
    Write ack_records(AckRecordsRequest) -> AckRecordsResponse = ack_records;
    /// Gives records back.
    Write nack_records(NackRecordsRequest) -> NackRecordsResponse = nack_records;
    /// Extends the time in which records must be acknowledged.
    Write touch_records(TouchRecordsRequest) -> TouchRecordsResponse = touch_records;
    /// Reads what a group has delivered and not seen acknowledged.
    Read list_pending(ListPendingRequest) -> ListPendingResponse = list_pending;
}
