//! The key-value service (A40).

mod read;
mod write;

pub(crate) use read::find;

use super::serve_call;
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
        serve_call(call, |deadline, request| {
            read::get(&self.context, request, deadline)
        })
        .await
    }

    async fn set_key(&self, call: Call<v1::SetKeyRequest>) -> CallResult<v1::SetKeyResponse> {
        serve_call(call, |deadline, request| {
            write::set(&self.context, request, deadline)
        })
        .await
    }

    async fn delete_key(
        &self,
        call: Call<v1::DeleteKeyRequest>,
    ) -> CallResult<v1::DeleteKeyResponse> {
        serve_call(call, |deadline, request| {
            write::delete(&self.context, request, deadline)
        })
        .await
    }

    async fn scan_keys(&self, call: Call<v1::ScanKeysRequest>) -> CallResult<v1::ScanKeysResponse> {
        serve_call(call, |deadline, request| {
            read::scan(&self.context, request, deadline)
        })
        .await
    }
}
