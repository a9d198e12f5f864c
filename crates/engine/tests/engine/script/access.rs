//! Parses commands on the access mode and on API tokens, and renders them.

use super::line::Line;
use super::show::option;
use super::world::World;
use flotilla_engine::ids::{ApproverRole, Identity, Namespace, TokenId, TokenName};
use flotilla_engine::rows::{
    Access, BindingCounts, BindingRecord, Bindings, BindingsByScope, BlockRecord,
    BlockedSubjectCount, BlockedSubjects, TokenCounts, TokenRecord, TokenSecrets, Tokens,
    TokensEnding,
};
use flotilla_engine::{
    AccessMode, Actor, BindSubject, BindingSubject, BlockSubject, Body, BootstrapToken, BoundActor,
    CommandScope, CreateToken, Grant, InitializeAccess, RecordTokenUses, RecoverAccess, Reply,
    RevokeToken, RotateToken, SecretHash, SetAccessMode, UnbindSubject, UnblockSubject,
};

/// When the proof of a subject expires.
const ENDS_AT_MS: u64 = 1_000_000;

/// `system`, `anonymous`, the number of a token, or a subject, whose proof expires at `ENDS_AT_MS`, and after each `+` one of its
/// groups.
pub(super) fn actor(name: &str) -> Actor {
    match name {
        "system" => Actor::System,
        "anonymous" => Actor::Anonymous,
        subjects if subjects.contains(':') => {
            let mut subjects = subjects.split('+').map(binding_subject);
            Actor::Bound(BoundActor {
                subject: subjects.next().expect("a text has a first part"),
                groups: subjects.collect(),
                ends_at_ms: ENDS_AT_MS,
            })
        }
        number => Actor::Token(token(
            number.parse().expect("an actor or the number of a token"),
        )),
    }
}

/// `initialize-access MODE bootstrap=N`, `recover-access N`, `set-access MODE`, `create-token N NAME grants=A,B approves=A,B ttl=MS identity=I secret=N cluster`,
/// `rotate-token N secret=N overlap=MS cluster`, `revoke-token N cluster`, `bind SUBJECT grants=A,B approves=A,B cluster`,
/// `unbind SUBJECT cluster`, `block SUBJECT ends=MS`, `unblock SUBJECT`. Without `cluster`, the tokens are those of the
/// namespace that `namespace=` names. A token has the secret with its number unless `secret=` gives another.
pub(super) fn command(verb: &str, namespace: &Namespace, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "initialize-access" => Body::InitializeAccess(InitializeAccess {
            mode: mode(line),
            bootstrap: line.number("bootstrap").map(|number| BootstrapToken {
                id: token(number),
                secret: secret(number),
            }),
        }),
        "recover-access" => {
            let number = line.next_number();
            Body::RecoverAccess(RecoverAccess {
                token: BootstrapToken {
                    id: token(number),
                    secret: secret(number),
                },
            })
        }
        "set-access" => Body::SetAccessMode(SetAccessMode { mode: mode(line) }),
        "create-token" => {
            let number = line.next_number();
            Body::CreateToken(Box::new(CreateToken {
                id: token(number),
                name: TokenName::new(line.word()).expect("a name"),
                scope: scope(namespace, line),
                identity: line
                    .option("identity")
                    .map(|text| Identity::new(text).expect("an identity")),
                grants: grants(line),
                approves: approves(line),
                secret: secret(line.number("secret").unwrap_or(number)),
                ttl_ms: line.number("ttl"),
            }))
        }
        "rotate-token" => {
            let number = line.next_number();
            Body::RotateToken(Box::new(RotateToken {
                id: token(number),
                scope: scope(namespace, line),
                secret: secret(line.number("secret").expect("a secret")),
                overlap_ms: line.number("overlap").unwrap_or_default(),
            }))
        }
        "use-tokens" => {
            let mut tokens = Vec::new();
            while line.has_words() {
                tokens.push(token(line.next_number()));
            }
            Body::RecordTokenUses(RecordTokenUses { tokens })
        }
        "revoke-token" => Body::RevokeToken(RevokeToken {
            id: token(line.next_number()),
            scope: scope(namespace, line),
        }),
        _ => return of_subject(verb, namespace, line),
    })
}

/// A command about a subject.
fn of_subject(verb: &str, namespace: &Namespace, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "bind" => Body::BindSubject(Box::new(BindSubject {
            subject: binding_subject(&line.word()),
            scope: scope(namespace, line),
            grants: grants(line),
            approves: approves(line),
        })),
        "unbind" => Body::UnbindSubject(UnbindSubject {
            subject: binding_subject(&line.word()),
            scope: scope(namespace, line),
        }),
        "block" => Body::BlockSubject(BlockSubject {
            subject: binding_subject(&line.word()),
            ends_at_ms: line.number("ends"),
        }),
        "unblock" => Body::UnblockSubject(UnblockSubject {
            subject: binding_subject(&line.word()),
        }),
        _ => return None,
    })
}

pub(super) const QUESTIONS: [&str; 3] = ["access", "bindings", "tokens"];

/// `access`, `bindings`, `tokens`
pub(super) fn answer(world: &World, verb: &str) -> Option<String> {
    Some(match verb {
        "access" => match world.read::<Access>(&()) {
            None => "not initialized\n".to_owned(),
            Some(access) => {
                let (mode, revision) = (access.mode.as_str(), access.revision);
                format!("{mode}, revision {revision}\n")
            }
        },
        "bindings" => {
            let rows = world.rows::<Bindings>();
            let bindings: String = rows
                .iter()
                .map(|(key, record)| binding_row(key, record))
                .collect();
            let rows = world.rows::<BlockedSubjects>();
            let blocks: String = rows
                .iter()
                .map(|(subject, record)| block_row(subject, record))
                .collect();
            let counts: Vec<_> = world
                .rows::<BindingCounts>()
                .iter()
                .map(|(scope, count)| format!("{:?} {count}", scope.as_str()))
                .collect();
            let listed = world.rows::<BindingsByScope>().len();
            let blocked = world.read::<BlockedSubjectCount>(&()).unwrap_or_default();
            format!(
                "{bindings}{blocks}{}; {listed} listed, {blocked} blocked\n",
                counts.join(", ")
            )
        }
        "tokens" => {
            let rows = world.rows::<Tokens>();
            let tokens: String = rows.iter().map(|(id, record)| row(*id, record)).collect();
            let counts = world.rows::<TokenCounts>();
            let secrets = world.rows::<TokenSecrets>().len();
            let ending = world.rows::<TokensEnding>().len();
            let counts: Vec<_> = counts
                .iter()
                .map(|(scope, count)| format!("{:?} {count}", scope.as_str()))
                .collect();
            format!(
                "{tokens}{}; {secrets} secrets, {ending} end\n",
                counts.join(", ")
            )
        }
        _ => return None,
    })
}

fn binding_row(
    (subject, scope): &(BindingSubject, CommandScope),
    record: &BindingRecord,
) -> String {
    let grants: Vec<_> = record.grants.iter().map(Grant::to_string).collect();
    let by = &record.changed_by;
    format!(
        "{subject} of {:?}, may {}, by {by}\n",
        scope.as_str(),
        grants.join(" ")
    )
}

fn block_row(subject: &BindingSubject, record: &BlockRecord) -> String {
    let ends = option(", ends ", &record.ends_at_ms);
    format!("{subject} blocked by {}{ends}\n", record.blocked_by)
}

/// A reply about tokens or subjects.
pub(super) fn reply(reply: &Reply) -> Option<String> {
    Some(match reply {
        Reply::TokenCreated(created) => {
            let expires = option(", expires ", &created.expires_at_ms);
            format!("token {}{expires}", created.id)
        }
        Reply::TokenRevoked(revoked) => one_of(revoked.is_new, "revoked", "had ended"),
        Reply::SubjectBound(bound) => one_of(bound.is_new, "bound", "bound again"),
        Reply::SubjectUnblocked(unblocked) => {
            one_of(unblocked.was_blocked, "unblocked", "was not blocked")
        }
        _ => return None,
    })
}

fn one_of(is_first: bool, first: &str, second: &str) -> String {
    if is_first { first } else { second }.to_owned()
}

fn row(id: TokenId, record: &TokenRecord) -> String {
    let grants: Vec<_> = record.grants.iter().map(Grant::to_string).collect();
    let TokenRecord {
        name,
        scope,
        identity,
        created_by,
        ..
    } = record;
    let ends = option(", ends ", &record.ends_at_ms());
    let revoked = option(", revoked ", &record.revoked_at_ms);
    let used = option(", used ", &record.last_used_at_ms);
    format!(
        "{id} {name} of {:?}, {identity}, may {}, by {created_by}{ends}{revoked}{used}\n",
        scope.as_str(),
        grants.join(" "),
    )
}

/// The approver roles, separated by commas.
fn approves(line: &mut Line) -> Vec<ApproverRole> {
    let roles = line.option("approves").unwrap_or_default();
    let roles = roles.split(',').filter(|role| !role.is_empty());
    roles
        .map(|role| ApproverRole::new(role).expect("a role"))
        .collect()
}

fn binding_subject(text: &str) -> BindingSubject {
    BindingSubject::parse(text).expect("a subject")
}

fn token(number: u64) -> TokenId {
    TokenId::from_bits(number)
}

fn secret(number: u64) -> SecretHash {
    let byte = u8::try_from(number).expect("a small number");
    SecretHash([byte; 32])
}

fn scope(namespace: &Namespace, line: &mut Line) -> CommandScope {
    match line.flag("cluster") {
        true => CommandScope::Cluster,
        false => CommandScope::Namespace(namespace.clone()),
    }
}

fn grants(line: &mut Line) -> Vec<Grant> {
    let text = line.option("grants").unwrap_or_default();
    let grants = text.split(',').filter(|grant| !grant.is_empty());
    grants
        .map(|grant| Grant::parse(grant).expect("a grant"))
        .collect()
}

fn mode(line: &mut Line) -> AccessMode {
    match line.word().as_str() {
        "open" => AccessMode::Open,
        "closed" => AccessMode::Closed,
        other => panic!("expected a mode, but found {other}"),
    }
}
