//! The key-value service (A40).

mod read;
mod write;

pub(crate) use read::find;

use super::serve_call;
use crate::access::CallContext;
use crate::context::Context;
use flotilla_api::v1;
use flotilla_api::v1::kv_service_server::KvService;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The key-value service of this node.
pub(crate) struct Keys {
    context: Arc<Context>,
}

impl Keys {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<RequestBody> = Request<RequestBody>;
type CallResult<ResponseBody> = Result<Response<ResponseBody>, Status>;

#[tonic::async_trait]
impl KvService for Keys {
    async fn get_key(&self, call: Call<v1::GetKeyRequest>) -> CallResult<v1::GetKeyResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            read::get(&context, request, deadline)
        })
        .await
    }

    async fn set_key(&self, call: Call<v1::SetKeyRequest>) -> CallResult<v1::SetKeyResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            write::set(&context, request, deadline)
        })
        .await
    }

    async fn delete_key(
        &self,
        call: Call<v1::DeleteKeyRequest>,
    ) -> CallResult<v1::DeleteKeyResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            write::delete(&context, request, deadline)
        })
        .await
    }

    async fn scan_keys(&self, call: Call<v1::ScanKeysRequest>) -> CallResult<v1::ScanKeysResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            read::scan(&context, request, deadline)
        })
        .await
    }
}
