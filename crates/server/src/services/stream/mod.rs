//! The stream service: one file per family of calls (A30, A31).

mod groups;
mod members;
mod name;
mod read;
mod settle;
mod streams;
mod take;
mod write;

use super::answer;
use crate::context::Context;
use crate::deadline;
use crate::limits::WAIT_MS_MAX;
use flotilla_api::v1;
use flotilla_api::v1::stream_service_server::StreamService;
use std::sync::Arc;
use std::time::Duration;
use take::Turns;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// The stream service of this node.
pub(crate) struct Streams {
    context: Arc<Context>,
    turns: Turns,
}

impl Streams {
    /// The service over what the node shares.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            turns: Turns::default(),
        }
    }
}

/// How long a caller waits.
#[derive(Clone, Copy)]
struct Patience {
    /// For the answer as such.
    deadline: Instant,
    /// In all, when the caller said so.
    given: Option<Instant>,
}

impl Patience {
    /// When a wait of `wait_ms` ends.
    fn until(&self, wait_ms: u64) -> Instant {
        let wait_end = Instant::now() + Duration::from_millis(wait_ms.min(WAIT_MS_MAX));
        self.given.map_or(wait_end, |given| given.min(wait_end))
    }
}

type Call<Asked> = Request<Asked>;
type Answer<Answered> = Result<Response<Answered>, Status>;

#[tonic::async_trait]
impl StreamService for Streams {
    async fn create_stream(
        &self,
        call: Call<v1::CreateStreamRequest>,
    ) -> Answer<v1::CreateStreamResponse> {
        answer(call, |deadline, asked| {
            streams::create(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_stream(&self, call: Call<v1::GetStreamRequest>) -> Answer<v1::StreamInfo> {
        answer(call, |deadline, asked| {
            streams::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_streams(
        &self,
        call: Call<v1::ListStreamsRequest>,
    ) -> Answer<v1::ListStreamsResponse> {
        answer(call, |deadline, asked| {
            streams::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn trim_stream(
        &self,
        call: Call<v1::TrimStreamRequest>,
    ) -> Answer<v1::TrimStreamResponse> {
        answer(call, |deadline, asked| {
            write::trim(&self.context, asked, deadline)
        })
        .await
    }

    async fn delete_stream(
        &self,
        call: Call<v1::DeleteStreamRequest>,
    ) -> Answer<v1::DeleteStreamResponse> {
        answer(call, |deadline, asked| {
            streams::delete(&self.context, asked, deadline)
        })
        .await
    }

    async fn append_records(
        &self,
        call: Call<v1::AppendRecordsRequest>,
    ) -> Answer<v1::AppendRecordsResponse> {
        answer(call, |deadline, asked| {
            write::append(&self.context, asked, deadline)
        })
        .await
    }

    async fn read_records(
        &self,
        call: Call<v1::ReadRecordsRequest>,
    ) -> Answer<v1::ReadRecordsResponse> {
        // A wait may be longer than the deadline that is assumed when none is given.
        let given = deadline::given(call.metadata());
        answer(call, |deadline, asked| {
            read::read(&self.context, asked, Patience { deadline, given })
        })
        .await
    }

    async fn create_group(
        &self,
        call: Call<v1::CreateGroupRequest>,
    ) -> Answer<v1::CreateGroupResponse> {
        answer(call, |deadline, asked| {
            groups::create(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_group(&self, call: Call<v1::GetGroupRequest>) -> Answer<v1::GroupInfo> {
        answer(call, |deadline, asked| {
            groups::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_groups(
        &self,
        call: Call<v1::ListGroupsRequest>,
    ) -> Answer<v1::ListGroupsResponse> {
        answer(call, |deadline, asked| {
            groups::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn delete_group(
        &self,
        call: Call<v1::DeleteGroupRequest>,
    ) -> Answer<v1::DeleteGroupResponse> {
        answer(call, |deadline, asked| {
            groups::delete(&self.context, asked, deadline)
        })
        .await
    }

    async fn join_group(&self, call: Call<v1::JoinGroupRequest>) -> Answer<v1::JoinGroupResponse> {
        answer(call, |deadline, asked| {
            members::join(&self.context, asked, deadline)
        })
        .await
    }

    async fn leave_group(
        &self,
        call: Call<v1::LeaveGroupRequest>,
    ) -> Answer<v1::LeaveGroupResponse> {
        answer(call, |deadline, asked| {
            members::leave(&self.context, asked, deadline)
        })
        .await
    }

    async fn take_records(
        &self,
        call: Call<v1::TakeRecordsRequest>,
    ) -> Answer<v1::TakeRecordsResponse> {
        let given = deadline::given(call.metadata());
        answer(call, |deadline, asked| {
            take::take(self, asked, Patience { deadline, given })
        })
        .await
    }

    async fn ack_records(
        &self,
        call: Call<v1::AckRecordsRequest>,
    ) -> Answer<v1::AckRecordsResponse> {
        answer(call, |deadline, asked| {
            settle::ack(&self.context, asked, deadline)
        })
        .await
    }

    async fn nack_records(
        &self,
        call: Call<v1::NackRecordsRequest>,
    ) -> Answer<v1::NackRecordsResponse> {
        answer(call, |deadline, asked| {
            settle::nack(&self.context, asked, deadline)
        })
        .await
    }

    async fn touch_records(
        &self,
        call: Call<v1::TouchRecordsRequest>,
    ) -> Answer<v1::TouchRecordsResponse> {
        answer(call, |deadline, asked| {
            settle::touch(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_pending(
        &self,
        call: Call<v1::ListPendingRequest>,
    ) -> Answer<v1::ListPendingResponse> {
        answer(call, |deadline, asked| {
            groups::pending(&self.context, asked, deadline)
        })
        .await
    }
}
