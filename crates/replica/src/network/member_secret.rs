//! How a caller at the peer port proves that it is a member, without TLS (X14).
//!
//! Each call between members carries a secret, which the host derives from what all members share; the replica does not know it. A
//! call that carries none is refused before its body is read. A call in progress, such as the stream of a leader, ends when what it
//! carries is no longer accepted. No clock takes part: a clock that jumps must not cost the quorum.

use crate::read::ReadError;
use crate::state::feed::{Notice, Subscription};
use crate::state::store::StateStore;
use crate::view::View;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tokio::sync::watch;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::service::Interceptor;
use tonic::{Code, Request, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The metadata that carries the secret.
const SECRET: &str = "flo-member-secret-bin";
/// The code of a refusal.
const CODE: &str = "peer_not_member";

/// The secret of the members of a cluster, as the host of a replica keeps it.
pub trait MemberSecret: Send + Sync + 'static {
    /// What this node's calls carry; `None` if the node has no secret.
    fn own(&self) -> Option<Vec<u8>>;

    /// Checks what a call carries. Called for each call, and again after each change.
    ///
    /// # Errors
    /// [`MemberRefusal`] if members need a secret, and the call does not carry an accepted one.
    fn check(&self, shown: Option<&[u8]>) -> Result<(), MemberRefusal>;

    /// Counts the changes of what is accepted.
    fn changes(&self) -> watch::Receiver<u64>;

    /// Follows the state of the replica, on which it may depend whether members need a secret. Called once, on the runtime of the
    /// replica, before the first call is accepted.
    fn follow(self: Arc<Self>, state: MemberState);
}

/// The state of a replica and its changes, for the host's [`MemberSecret`]. It does not keep the stores open.
pub struct MemberState {
    subscription: Subscription,
    store: Weak<dyn StateStore>,
}

/// Why a caller does not count as a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRefusal {
    /// One sentence, `expected …, but …`.
    pub message: &'static str,
    /// What to do.
    pub hint: &'static str,
}

/// Adds this node's secret to calls to members.
#[derive(Clone, Default)]
pub struct MemberSecretInterceptor(Option<Arc<dyn MemberSecret>>);

impl MemberState {
    pub(crate) fn new(subscription: Subscription, store: &Arc<dyn StateStore>) -> Self {
        Self {
            subscription,
            store: Arc::downgrade(store),
        }
    }

    /// What was applied next since the replica started; `None` once it has ended.
    pub async fn next(&mut self) -> Option<Notice> {
        self.subscription.next().await
    }

    /// Reads what this member has applied.
    ///
    /// # Errors
    /// [`ReadError`] if the state cannot be read, or the replica has ended.
    pub fn view<T>(&self, read: impl FnOnce(&View<'_>) -> T) -> Result<T, ReadError> {
        let store = self.store.upgrade().ok_or(ReadError::Shutdown)?;
        View::open(store.as_ref(), read)
    }
}

impl From<MemberRefusal> for Status {
    fn from(refusal: MemberRefusal) -> Self {
        let hint = HashMap::from([("hint".to_owned(), refusal.hint.to_owned())]);
        let details = ErrorDetails::with_error_info(CODE, "flotilla", hint);
        Self::with_error_details(Code::PermissionDenied, refusal.message, details)
    }
}

impl MemberSecretInterceptor {
    /// Adds this secret, if there is one.
    #[must_use]
    pub fn new(secret: Option<Arc<dyn MemberSecret>>) -> Self {
        Self(secret)
    }
}

impl Interceptor for MemberSecretInterceptor {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(secret) = self.0.as_ref().and_then(|secret| secret.own()) {
            let mut value = BinaryMetadataValue::from_bytes(&secret);
            value.set_sensitive(true);
            request.metadata_mut().insert_bin(SECRET, value);
        }
        Ok(request)
    }
}

/// The secret that a call carries.
pub(crate) fn shown(metadata: &MetadataMap) -> Option<Vec<u8>> {
    let value = metadata.get_bin(SECRET)?.to_bytes().ok()?;
    Some(value.to_vec())
}
