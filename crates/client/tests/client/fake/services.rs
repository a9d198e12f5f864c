//! The services of a fake node: they pass every call to the test.

use super::{Answer, Arrival, UnaryCall, WatchCall, WorkerCall};
use flotilla_api::v1;
use flotilla_api::v1::action_service_server::ActionService;
use flotilla_api::v1::stream_service_server::StreamService;
use flotilla_api::v1::worker_service_server::WorkerService;
use flotilla_api::v1::workflow_service_server::WorkflowService;
use prost::Message;
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Passes every call to the test.
#[derive(Clone)]
pub(crate) struct Service {
    /// Receives the calls.
    pub(crate) arrivals: mpsc::Sender<Arrival>,
}

impl Service {
    async fn unary<Q: Message, A: Message + Default>(
        &self,
        rpc: &'static str,
        request: Request<Q>,
    ) -> Result<Response<A>, Status> {
        let (metadata, _, request) = request.into_parts();
        let (answer, answered) = oneshot::channel();
        let call = UnaryCall {
            rpc,
            request: request.encode_to_vec(),
            metadata,
            answer,
        };
        self.pass_on(Arrival::Unary(call)).await?;
        let Answer { reply, leader } = answered.await.map_err(|_| gone())??;
        let mut response = Response::new(A::decode(reply.as_slice()).expect("just encoded"));
        if let Some(leader) = leader {
            let leader = leader.parse().expect("an address is ASCII");
            response.metadata_mut().insert("flo-leader", leader);
        }
        Ok(response)
    }

    async fn pass_on(&self, arrival: Arrival) -> Result<(), Status> {
        self.arrivals.send(arrival).await.map_err(|_| gone())
    }
}

fn gone() -> Status {
    Status::unavailable("the test has dropped this node or call")
}

/// Implements a service: unary methods by name, other methods verbatim.
macro_rules! service {
    ($service:ident { $($rpc:ident($request:ident) -> $reply:ident;)* } $($rest:tt)*) => {
        #[tonic::async_trait]
        impl $service for Service {
            $(async fn $rpc(
                &self,
                request: Request<v1::$request>,
            ) -> Result<Response<v1::$reply>, Status> {
                self.unary(stringify!($rpc), request).await
            })*

            $($rest)*
        }
    };
}

service! { WorkflowService {
    create_workflow(CreateWorkflowRequest) -> CreateWorkflowResponse;
    validate_workflow(ValidateWorkflowRequest) -> ValidateWorkflowResponse;
    get_workflow(GetWorkflowRequest) -> Workflow;
    list_workflows(ListWorkflowsRequest) -> ListWorkflowsResponse;
    list_revisions(ListRevisionsRequest) -> ListRevisionsResponse;
    enable_workflow(EnableWorkflowRequest) -> EnableWorkflowResponse;
    disable_workflow(DisableWorkflowRequest) -> DisableWorkflowResponse;
    start_run(StartRunRequest) -> StartRunResponse;
    get_run(GetRunRequest) -> Run;
    get_step_output(GetStepOutputRequest) -> GetStepOutputResponse;
    list_runs(ListRunsRequest) -> ListRunsResponse;
    get_history(GetHistoryRequest) -> GetHistoryResponse;
    signal_run(SignalRunRequest) -> SignalRunResponse;
    add_info(AddInfoRequest) -> AddInfoResponse;
    get_run_report(GetRunReportRequest) -> GetRunReportResponse;
    list_info(ListInfoRequest) -> ListInfoResponse;
    decide_approval(DecideApprovalRequest) -> DecideApprovalResponse;
    complete_step(CompleteStepRequest) -> CompleteStepResponse;
    resume_run(ResumeRunRequest) -> ResumeRunResponse;
    retry_run(RetryRunRequest) -> StartRunResponse;
    cancel_run(CancelRunRequest) -> CancelRunResponse;
    get_schedule(GetScheduleRequest) -> Schedule;
    invalidate_cache(InvalidateCacheRequest) -> InvalidateCacheResponse;
    delete_workflow(DeleteWorkflowRequest) -> DeleteWorkflowResponse;
}
    type WatchRunStream = ReceiverStream<Result<v1::WatchRunResponse, Status>>;

    async fn watch_run(
        &self,
        request: Request<v1::WatchRunRequest>,
    ) -> Result<Response<Self::WatchRunStream>, Status> {
        let (updates, replies) = mpsc::channel(16);
        let call = WatchCall { request: request.into_inner(), updates };
        self.pass_on(Arrival::Watch(call)).await?;
        Ok(Response::new(ReceiverStream::new(replies)))
    }
}

service! { ActionService {
    register_action(RegisterActionRequest) -> RegisterActionResponse;
    get_action(GetActionRequest) -> Action;
    list_actions(ListActionsRequest) -> ListActionsResponse;
    delete_action(DeleteActionRequest) -> DeleteActionResponse;
    enable_action(EnableActionRequest) -> EnableActionResponse;
    disable_action(DisableActionRequest) -> DisableActionResponse;
    invoke_action(InvokeActionRequest) -> InvokeActionResponse;
    get_action_run(GetActionRunRequest) -> ActionRun;
    cancel_action_run(CancelActionRunRequest) -> CancelActionRunResponse;
    list_action_runs(ListActionRunsRequest) -> ListActionRunsResponse;
    report_task(ReportTaskRequest) -> ReportTaskResponse;
    list_dead_letters(ListDeadLettersRequest) -> ListDeadLettersResponse;
    get_dead_letter(GetDeadLetterRequest) -> DeadLetter;
    requeue_dead_letters(RequeueDeadLettersRequest) -> RequeueDeadLettersResponse;
    purge_dead_letters(PurgeDeadLettersRequest) -> PurgeDeadLettersResponse;
} }

service! { StreamService {
    create_stream(CreateStreamRequest) -> CreateStreamResponse;
    get_stream(GetStreamRequest) -> StreamInfo;
    list_streams(ListStreamsRequest) -> ListStreamsResponse;
    trim_stream(TrimStreamRequest) -> TrimStreamResponse;
    delete_stream(DeleteStreamRequest) -> DeleteStreamResponse;
    append_records(AppendRecordsRequest) -> AppendRecordsResponse;
    read_records(ReadRecordsRequest) -> ReadRecordsResponse;
    create_group(CreateGroupRequest) -> CreateGroupResponse;
    get_group(GetGroupRequest) -> GroupInfo;
    list_groups(ListGroupsRequest) -> ListGroupsResponse;
    delete_group(DeleteGroupRequest) -> DeleteGroupResponse;
    join_group(JoinGroupRequest) -> JoinGroupResponse;
    leave_group(LeaveGroupRequest) -> LeaveGroupResponse;
    take_records(TakeRecordsRequest) -> TakeRecordsResponse;
    ack_records(AckRecordsRequest) -> AckRecordsResponse;
    nack_records(NackRecordsRequest) -> NackRecordsResponse;
    touch_records(TouchRecordsRequest) -> TouchRecordsResponse;
    list_pending(ListPendingRequest) -> ListPendingResponse;
} }

service! { WorkerService {
    register(RegisterRequest) -> RegisterResponse;
    heartbeat(HeartbeatRequest) -> HeartbeatResponse;
    drain(DrainRequest) -> DrainResponse;
    deregister(DeregisterRequest) -> DeregisterResponse;
    list_workers(ListWorkersRequest) -> ListWorkersResponse;
    get_worker(GetWorkerRequest) -> WorkerRecord;
    r#await(AwaitRequest) -> AwaitResponse;
    complete(CompleteRequest) -> CompleteResponse;
    accept(AcceptRequest) -> AcceptResponse;
    fail(FailRequest) -> FailResponse;
    touch(TouchRequest) -> TouchResponse;
    add_task_info(AddTaskInfoRequest) -> AddTaskInfoResponse;
}
    type StreamStream = ReceiverStream<Result<v1::ServerMessage, Status>>;

    async fn stream(
        &self,
        request: Request<Streaming<v1::WorkerMessage>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let (accept, accepted) = oneshot::channel();
        let call = WorkerCall { messages: request.into_inner(), accept };
        self.pass_on(Arrival::Worker(call)).await?;
        let replies = accepted.await.map_err(|_| gone())??;
        Ok(Response::new(ReceiverStream::new(replies)))
    }
}
