//! The access mode, and who the caller is (X1).

use crate::access::CallContext;
use crate::convert;
use crate::errors::{Refusal, ServerCode};
use crate::gateway::Freshness;
use crate::request;
use crate::services::inspections::Inspected;
use flotilla_api::v1;
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::PageRange;
use flotilla_engine::{AccessMode, AccessRejection, Actor, BoundActor, SetAccessMode, reply, view};
use tokio::time::Instant;

/// Bindings of a caller that `WhoAmI` shows.
const BINDINGS_SHOWN_MAX: usize = 1_000;

/// Serves `WhoAmI`.
pub(super) async fn who_am_i(
    context: &CallContext,
    deadline: Instant,
) -> Result<v1::WhoAmIResponse, Refusal> {
    let actor = context.gateway.actor().clone();
    let look_up = |reader: &dyn Reader| caller(reader, &actor);
    let home = context.gateway.home();
    let response = home
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    match (&actor, &response.token) {
        (Actor::Token(_), None) => Err(AccessRejection::CredentialUnknown.into()),
        _ => Ok(response),
    }
}

/// What the cluster has of the caller.
fn caller(reader: &dyn Reader, actor: &Actor) -> Result<v1::WhoAmIResponse, StoreError> {
    let mode = view::access(reader)?.map_or(AccessMode::Open, |access| access.mode);
    let mut response = v1::WhoAmIResponse {
        mode: convert::access::mode(mode).into(),
        ..v1::WhoAmIResponse::default()
    };
    match actor {
        Actor::System | Actor::Anonymous => {}
        Actor::Token(id) => {
            let record = view::token(reader, *id)?;
            response.token = record.map(|record| convert::access::token(*id, record));
        }
        Actor::Bound(bound) => response.subject = Some(proven_subject(reader, bound)?),
    }
    Ok(response)
}

fn proven_subject(
    reader: &dyn Reader,
    bound: &BoundActor,
) -> Result<v1::ProvenSubject, StoreError> {
    let mut bindings = Vec::new();
    for subject in bound.subjects() {
        let rest = BINDINGS_SHOWN_MAX - bindings.len();
        if rest == 0 {
            break;
        }
        let found = view::bindings_of(reader, subject, PageRange::first(rest))?.items;
        let found = found.into_iter();
        bindings.extend(
            found.map(|(scope, record)| convert::access::binding((subject, &scope), record)),
        );
    }
    Ok(v1::ProvenSubject {
        subject: bound.subject.to_string(),
        identity: bound.subject.identity().to_string(),
        expires_at_ms: bound.ends_at_ms,
        bindings,
        groups: bound.groups.iter().map(ToString::to_string).collect(),
    })
}

/// Serves `SetAccess`.
pub(super) async fn set(
    context: &CallContext,
    request: v1::SetAccessRequest,
    deadline: Instant,
) -> Result<v1::Access, Refusal> {
    let mode = match request.mode() {
        v1::AccessMode::Open => AccessMode::Open,
        v1::AccessMode::Closed => AccessMode::Closed,
        v1::AccessMode::Unspecified => {
            let message = "expected `open` or `closed`, but the request gives neither";
            return Err(Refusal::invalid("mode", message));
        }
    };
    match mode {
        AccessMode::Open => check_no_voter_requires_token(context, deadline).await?,
        AccessMode::Closed => check_keyrings(context, deadline).await?,
    }
    let command = request::cluster_command(&request.request_id, SetAccessMode { mode })?;
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    get(context, deadline).await
}

/// Checks that no voter refuses callers without a token by its configuration: such a cluster would be open at some nodes only.
/// A voter that does not respond is not counted, but serves no such caller either.
async fn check_no_voter_requires_token(
    context: &CallContext,
    deadline: Instant,
) -> Result<(), Refusal> {
    let voters = Inspected::voters(context, deadline).await;
    let mut voters = voters.into_iter().filter_map(|voter| voter.inspection);
    match voters.find(|voter| voter.requires_token) {
        None => Ok(()),
        Some(voter) => {
            let text = format!(
                "expected no voter to require tokens, but the configuration of node {} does",
                voter.node_id
            );
            Err(Refusal::new(ServerCode::VoterRequiresToken, text)
                .with_hint("remove `require_token` from the configuration of all nodes, and restart them one by one"))
        }
    }
}

/// Checks that all voters have the same keyring: any of them may lead a closed cluster.
async fn check_keyrings(context: &CallContext, deadline: Instant) -> Result<(), Refusal> {
    let voters = Inspected::voters(context, deadline).await;
    let mut voters = voters.iter();
    voters.try_for_each(|voter| voter.check_keyring(context))
}

/// Serves `GetAccess`.
pub(super) async fn get(context: &CallContext, deadline: Instant) -> Result<v1::Access, Refusal> {
    let home = context.gateway.home();
    let look_up = |reader: &dyn Reader| view::access(reader);
    let access = home
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    Ok(convert::access::access(access))
}
