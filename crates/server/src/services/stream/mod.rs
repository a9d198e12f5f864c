//! The stream service: one file per family of calls (A30, A31).

mod ack;
mod groups;
mod members;
mod name;
mod read;
mod streams;
mod take;
mod write;

use super::serve_call;
use crate::context::Context;
use crate::deadline::{self, WaitBounds};
use flotilla_api::v1;
use flotilla_api::v1::stream_service_server::StreamService;
use std::sync::Arc;
use take::Turns;
use tonic::{Request, Response, Status};

/// The stream service of this node.
pub(crate) struct Streams {
    context: Arc<Context>,
    turns: Turns,
}

impl Streams {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            turns: Turns::default(),
        }
    }
}

type Call<RequestBody> = Request<RequestBody>;
type CallResult<ResponseBody> = Result<Response<ResponseBody>, Status>;

#[tonic::async_trait]
impl StreamService for Streams {
    async fn create_stream(
        &self,
        call: Call<v1::CreateStreamRequest>,
    ) -> CallResult<v1::CreateStreamResponse> {
        serve_call(call, |deadline, request| {
            streams::create(&self.context, request, deadline)
        })
        .await
    }

    async fn get_stream(&self, call: Call<v1::GetStreamRequest>) -> CallResult<v1::StreamInfo> {
        serve_call(call, |deadline, request| {
            streams::get(&self.context, request, deadline)
        })
        .await
    }

    async fn list_streams(
        &self,
        call: Call<v1::ListStreamsRequest>,
    ) -> CallResult<v1::ListStreamsResponse> {
        serve_call(call, |deadline, request| {
            streams::list(&self.context, request, deadline)
        })
        .await
    }

    async fn trim_stream(
        &self,
        call: Call<v1::TrimStreamRequest>,
    ) -> CallResult<v1::TrimStreamResponse> {
        serve_call(call, |deadline, request| {
            write::trim(&self.context, request, deadline)
        })
        .await
    }

    async fn delete_stream(
        &self,
        call: Call<v1::DeleteStreamRequest>,
    ) -> CallResult<v1::DeleteStreamResponse> {
        serve_call(call, |deadline, request| {
            streams::delete(&self.context, request, deadline)
        })
        .await
    }

    async fn append_records(
        &self,
        call: Call<v1::AppendRecordsRequest>,
    ) -> CallResult<v1::AppendRecordsResponse> {
        serve_call(call, |deadline, request| {
            write::append(&self.context, request, deadline)
        })
        .await
    }

    async fn read_records(
        &self,
        call: Call<v1::ReadRecordsRequest>,
    ) -> CallResult<v1::ReadRecordsResponse> {
        // A wait may exceed the default deadline.
        let given = deadline::given(call.metadata());
        serve_call(call, |deadline, request| {
            read::read(&self.context, request, WaitBounds { deadline, given })
        })
        .await
    }

    async fn create_group(
        &self,
        call: Call<v1::CreateGroupRequest>,
    ) -> CallResult<v1::CreateGroupResponse> {
        serve_call(call, |deadline, request| {
            groups::create(&self.context, request, deadline)
        })
        .await
    }

    async fn get_group(&self, call: Call<v1::GetGroupRequest>) -> CallResult<v1::GroupInfo> {
        serve_call(call, |deadline, request| {
            groups::get(&self.context, request, deadline)
        })
        .await
    }

    async fn list_groups(
        &self,
        call: Call<v1::ListGroupsRequest>,
    ) -> CallResult<v1::ListGroupsResponse> {
        serve_call(call, |deadline, request| {
            groups::list(&self.context, request, deadline)
        })
        .await
    }

    async fn delete_group(
        &self,
        call: Call<v1::DeleteGroupRequest>,
    ) -> CallResult<v1::DeleteGroupResponse> {
        serve_call(call, |deadline, request| {
            groups::delete(&self.context, request, deadline)
        })
        .await
    }

    async fn join_group(
        &self,
        call: Call<v1::JoinGroupRequest>,
    ) -> CallResult<v1::JoinGroupResponse> {
        serve_call(call, |deadline, request| {
            members::join(&self.context, request, deadline)
        })
        .await
    }

    async fn leave_group(
        &self,
        call: Call<v1::LeaveGroupRequest>,
    ) -> CallResult<v1::LeaveGroupResponse> {
        serve_call(call, |deadline, request| {
            members::leave(&self.context, request, deadline)
        })
        .await
    }

    async fn take_records(
        &self,
        call: Call<v1::TakeRecordsRequest>,
    ) -> CallResult<v1::TakeRecordsResponse> {
        let given = deadline::given(call.metadata());
        serve_call(call, |deadline, request| {
            take::take(self, request, WaitBounds { deadline, given })
        })
        .await
    }

    async fn ack_records(
        &self,
        call: Call<v1::AckRecordsRequest>,
    ) -> CallResult<v1::AckRecordsResponse> {
        serve_call(call, |deadline, request| {
            ack::ack(&self.context, request, deadline)
        })
        .await
    }

    async fn nack_records(
        &self,
        call: Call<v1::NackRecordsRequest>,
    ) -> CallResult<v1::NackRecordsResponse> {
        serve_call(call, |deadline, request| {
            ack::nack(&self.context, request, deadline)
        })
        .await
    }

    async fn touch_records(
        &self,
        call: Call<v1::TouchRecordsRequest>,
    ) -> CallResult<v1::TouchRecordsResponse> {
        serve_call(call, |deadline, request| {
            ack::touch(&self.context, request, deadline)
        })
        .await
    }

    async fn list_pending(
        &self,
        call: Call<v1::ListPendingRequest>,
    ) -> CallResult<v1::ListPendingResponse> {
        serve_call(call, |deadline, request| {
            groups::pending(&self.context, request, deadline)
        })
        .await
    }
}
