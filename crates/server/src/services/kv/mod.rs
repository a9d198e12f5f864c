//! The key-value service (A40).

mod read;
mod write;

pub(crate) use read::find;

use super::answer;
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
    /// The service over what the node shares.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<Asked> = Request<Asked>;
type Answer<Answered> = Result<Response<Answered>, Status>;

#[tonic::async_trait]
impl KvService for Keys {
    async fn get_key(&self, call: Call<v1::GetKeyRequest>) -> Answer<v1::GetKeyResponse> {
        answer(call, |deadline, asked| {
            read::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn set_key(&self, call: Call<v1::SetKeyRequest>) -> Answer<v1::SetKeyResponse> {
        answer(call, |deadline, asked| {
            write::set(&self.context, asked, deadline)
        })
        .await
    }

    async fn delete_key(&self, call: Call<v1::DeleteKeyRequest>) -> Answer<v1::DeleteKeyResponse> {
        answer(call, |deadline, asked| {
            write::delete(&self.context, asked, deadline)
        })
        .await
    }

    async fn scan_keys(&self, call: Call<v1::ScanKeysRequest>) -> Answer<v1::ScanKeysResponse> {
        answer(call, |deadline, asked| {
            read::scan(&self.context, asked, deadline)
        })
        .await
    }
}
