//! Reading keys (A40).

use crate::access::CallContext;
use crate::convert;
use crate::errors::{Refusal, ServerCode};
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::KeyRecord;
use flotilla_engine::ids::{KvKey, Namespace};
use flotilla_engine::limits::NAME_BYTES_MAX;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, KeySelection};
use tokio::time::Instant;

/// Serves `GetKey`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetKeyRequest,
    deadline: Instant,
) -> Result<v1::GetKeyResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let key = request::name("key", KvKey::new(request.key))?;
    let found = find(context, &namespace, &key, deadline).await?;
    let record = found.ok_or_else(|| {
        let message = format!("expected a key \"{key}\", but it does not exist");
        Refusal::new(ServerCode::KeyNotFound, message).with_hint("`flo kv scan PREFIX` lists them")
    })?;
    Ok(v1::GetKeyResponse {
        item: Some(convert::kv::message(key, record)),
    })
}

/// A key's record, linearizable; `None` if the key does not exist or has expired.
pub(crate) async fn find(
    context: &CallContext,
    namespace: &Namespace,
    key: &KvKey,
    deadline: Instant,
) -> Result<Option<KeyRecord>, Refusal> {
    let gateway = context.gateway.of(namespace);
    gateway.catch_up(deadline).await?;
    // Keys that have expired by the time of the last entry that this read must see are gone.
    let now_ms = gateway.replica().now_ms();
    gateway.read_here(|reader| view::key(reader, namespace, key, now_ms))
}

/// Serves `ScanKeys`.
pub(super) async fn scan(
    context: &CallContext,
    request: v1::ScanKeysRequest,
    deadline: Instant,
) -> Result<v1::ScanKeysResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let prefix = request.prefix;
    if prefix.len() > NAME_BYTES_MAX {
        let message = format!(
            "expected a prefix of at most {NAME_BYTES_MAX} bytes, but it has {}",
            prefix.len()
        );
        return Err(Refusal::invalid("prefix", message));
    }
    let page = request::page(request.limit, &request.page_token)?;
    gateway.catch_up(deadline).await?;
    let now_ms = gateway.replica().now_ms();
    let list = move |reader: &dyn Reader| {
        let selection = KeySelection {
            prefix: &prefix,
            now_ms,
        };
        view::keys(reader, &namespace, selection, page.range())
    };
    let found = gateway.scan(Freshness::Stale, deadline, list).await?;
    let items = found.items.into_iter();
    Ok(v1::ScanKeysResponse {
        items: items
            .map(|found| convert::kv::message(found.key, found.record))
            .collect(),
        next_page_token: request::page_token(found.next),
    })
}
