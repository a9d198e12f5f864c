//! The actor on whose behalf a member calls another one.

use crate::errors::Refusal;
use flotilla_engine::Actor;
use tonic::metadata::{BinaryMetadataValue, MetadataMap};
use tonic::{Request, Status};

/// The metadata that states the actor, encoded by the engine.
const ACTOR: &str = "flo-actor-bin";

/// The actor of a call that another member forwards. Only calls at the peer port have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ForwardedActor(pub(crate) Actor);

impl ForwardedActor {
    /// Whether another member forwards the call. It is not forwarded again: nodes that disagree on the leader would otherwise
    /// forward it forever.
    pub(crate) fn is_in<T>(request: &Request<T>) -> bool {
        request.extensions().get::<Self>().is_some()
    }

    /// States the actor in a call to another member.
    pub(super) fn state(self, metadata: &mut MetadataMap) {
        let value = BinaryMetadataValue::from_bytes(&self.0.encode());
        metadata.insert_bin(ACTOR, value);
    }

    /// Takes the actor that a member states.
    pub(crate) fn take(mut request: Request<()>) -> Result<Request<()>, Status> {
        let actor = Self::of(request.metadata()).ok_or_else(|| {
            let text = "expected the actor of a forwarded call, but it is missing, or this node cannot decode it";
            Status::from(Refusal::unavailable(text))
        })?;
        request.extensions_mut().insert(actor);
        Ok(request)
    }

    fn of(metadata: &MetadataMap) -> Option<Self> {
        let bytes = metadata.get_bin(ACTOR)?.to_bytes().ok()?;
        Actor::decode(&bytes).ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::TokenId;
    use flotilla_engine::{BindingSubject, BoundActor};
    use tonic::Code;

    #[test]
    fn a_stated_actor_arrives_and_a_call_without_one_is_refused() {
        for actor in [
            Actor::System,
            Actor::Anonymous,
            Actor::Token(TokenId::from_bits(33)),
            Actor::Bound(BoundActor {
                subject: BindingSubject::parse("cert:uri:spiffe://shop/till").expect("a subject"),
                groups: Vec::new(),
                ends_at_ms: 1_700_000_000_000,
            }),
        ] {
            let mut request = Request::new(());
            ForwardedActor(actor.clone()).state(request.metadata_mut());
            assert!(!ForwardedActor::is_in(&request));
            let request = ForwardedActor::take(request).expect("it has an actor");
            assert!(ForwardedActor::is_in(&request));
            let taken = request.extensions().get();
            assert_eq!(taken, Some(&ForwardedActor(actor)));
        }
        let mut request = Request::new(());
        for bytes in [None, Some(&[9][..]), Some(&[0, 0])] {
            if let Some(bytes) = bytes {
                let value = BinaryMetadataValue::from_bytes(bytes);
                request.metadata_mut().insert_bin(ACTOR, value);
            }
            let refused = ForwardedActor::take(request).expect_err("there is no actor");
            assert_eq!(refused.code(), Code::Unavailable);
            request = Request::new(());
        }
    }
}
