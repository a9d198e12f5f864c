//! The heads of requests, which state their senders.

use crate::network::protocol::{
    AppendRequest, FetchSnapshotRequest, ForwardRequest, Sender, SnapshotPart, StatusRequest,
    TransferLeaderRequest, VoteRequest, forward_request, snapshot_part,
};

/// A request, or a message of a stream of requests.
pub(crate) trait Headed {
    /// Its sender; `None` if it does not state one. In some streams, only the first message states it.
    fn sender(&self) -> Option<&Sender>;
}

macro_rules! headed_by_a_field {
    ($($request:ty),*) => {
        $(impl Headed for $request {
            fn sender(&self) -> Option<&Sender> {
                self.sender.as_ref()
            }
        })*
    };
}

headed_by_a_field!(
    AppendRequest,
    FetchSnapshotRequest,
    StatusRequest,
    TransferLeaderRequest,
    VoteRequest
);

impl Headed for SnapshotPart {
    fn sender(&self) -> Option<&Sender> {
        match &self.part {
            Some(snapshot_part::Part::Begin(begin)) => begin.sender.as_ref(),
            _ => None,
        }
    }
}

impl Headed for ForwardRequest {
    fn sender(&self) -> Option<&Sender> {
        match &self.body {
            Some(forward_request::Body::Open(sender)) => Some(sender),
            _ => None,
        }
    }
}
