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
use crate::access::CallContext;
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
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            streams::create(&context, request, deadline)
        })
        .await
    }

    async fn get_stream(&self, call: Call<v1::GetStreamRequest>) -> CallResult<v1::StreamInfo> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            streams::get(&context, request, deadline)
        })
        .await
    }

    async fn list_streams(
        &self,
        call: Call<v1::ListStreamsRequest>,
    ) -> CallResult<v1::ListStreamsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            streams::list(&context, request, deadline)
        })
        .await
    }

    async fn trim_stream(
        &self,
        call: Call<v1::TrimStreamRequest>,
    ) -> CallResult<v1::TrimStreamResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            write::trim(&context, request, deadline)
        })
        .await
    }

    async fn delete_stream(
        &self,
        call: Call<v1::DeleteStreamRequest>,
    ) -> CallResult<v1::DeleteStreamResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            streams::delete(&context, request, deadline)
        })
        .await
    }

    async fn append_records(
        &self,
        call: Call<v1::AppendRecordsRequest>,
    ) -> CallResult<v1::AppendRecordsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            write::append(&context, request, deadline)
        })
        .await
    }

    async fn read_records(
        &self,
        call: Call<v1::ReadRecordsRequest>,
    ) -> CallResult<v1::ReadRecordsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        // A wait may exceed the default deadline.
        let given = deadline::given(call.metadata());
        serve_call(&context, call, |deadline, request| {
            read::read(&context, request, WaitBounds { deadline, given })
        })
        .await
    }

    async fn create_group(
        &self,
        call: Call<v1::CreateGroupRequest>,
    ) -> CallResult<v1::CreateGroupResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            groups::create(&context, request, deadline)
        })
        .await
    }

    async fn get_group(&self, call: Call<v1::GetGroupRequest>) -> CallResult<v1::GroupInfo> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            groups::get(&context, request, deadline)
        })
        .await
    }

    async fn list_groups(
        &self,
        call: Call<v1::ListGroupsRequest>,
    ) -> CallResult<v1::ListGroupsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            groups::list(&context, request, deadline)
        })
        .await
    }

    async fn delete_group(
        &self,
        call: Call<v1::DeleteGroupRequest>,
    ) -> CallResult<v1::DeleteGroupResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            groups::delete(&context, request, deadline)
        })
        .await
    }

    async fn join_group(
        &self,
        call: Call<v1::JoinGroupRequest>,
    ) -> CallResult<v1::JoinGroupResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            members::join(&context, request, deadline)
        })
        .await
    }

    async fn leave_group(
        &self,
        call: Call<v1::LeaveGroupRequest>,
    ) -> CallResult<v1::LeaveGroupResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            members::leave(&context, request, deadline)
        })
        .await
    }

    async fn take_records(
        &self,
        call: Call<v1::TakeRecordsRequest>,
    ) -> CallResult<v1::TakeRecordsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        let given = deadline::given(call.metadata());
        serve_call(&context, call, |deadline, request| {
            take::take(
                (&context, &self.turns),
                request,
                WaitBounds { deadline, given },
            )
        })
        .await
    }

    async fn ack_records(
        &self,
        call: Call<v1::AckRecordsRequest>,
    ) -> CallResult<v1::AckRecordsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            ack::ack(&context, request, deadline)
        })
        .await
    }

    async fn nack_records(
        &self,
        call: Call<v1::NackRecordsRequest>,
    ) -> CallResult<v1::NackRecordsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            ack::nack(&context, request, deadline)
        })
        .await
    }

    async fn touch_records(
        &self,
        call: Call<v1::TouchRecordsRequest>,
    ) -> CallResult<v1::TouchRecordsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            ack::touch(&context, request, deadline)
        })
        .await
    }

    async fn list_pending(
        &self,
        call: Call<v1::ListPendingRequest>,
    ) -> CallResult<v1::ListPendingResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            groups::pending(&context, request, deadline)
        })
        .await
    }
}
