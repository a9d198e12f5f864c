//! An API token.

use crate::output::Row;
use crate::time;
use flotilla_client::{TokenSecret, v1};
use serde::Serialize;

/// An API token, without its secret.
#[derive(Debug, Serialize)]
pub(crate) struct TokenView {
    id: String,
    name: String,
    /// `None` for a token of the cluster.
    namespace: Option<String>,
    identity: String,
    grants: Vec<String>,
    approves: Vec<String>,
    created_at_ms: u64,
    created_by: Option<String>,
    expires_at_ms: Option<u64>,
    revoked_at_ms: Option<u64>,
    last_used_at_ms: Option<u64>,
}

/// A token that was created or rotated, with the secret that is shown once.
#[derive(Serialize)]
pub(crate) struct NewTokenView {
    /// The whole token.
    pub(crate) secret: String,
    /// What the cluster stores of it.
    token: TokenView,
}

impl NewTokenView {
    /// The token with this secret.
    pub(crate) fn new(secret: TokenSecret, token: v1::Token) -> Self {
        Self {
            secret: secret.into_token(&token.id).expose().to_owned(),
            token: TokenView::from(token),
        }
    }
}

impl From<v1::Token> for TokenView {
    fn from(token: v1::Token) -> Self {
        Self {
            id: token.id,
            name: token.name,
            namespace: Some(token.namespace).filter(|namespace| !namespace.is_empty()),
            identity: token.identity,
            grants: token.grants,
            approves: token.approves,
            created_at_ms: token.created_at_ms,
            created_by: token.created_by,
            expires_at_ms: token.expires_at_ms,
            revoked_at_ms: token.revoked_at_ms,
            last_used_at_ms: token.last_used_at_ms,
        }
    }
}

impl TokenView {
    /// The token for people, a line for each property.
    pub(crate) fn text(&self) -> String {
        let scope = match &self.namespace {
            Some(namespace) => format!("namespace {namespace}"),
            None => "the cluster".to_owned(),
        };
        let created_by = match &self.created_by {
            Some(token) => format!(" by token {token}"),
            None => String::new(),
        };
        let approves = match self.approves.as_slice() {
            [] => String::new(),
            roles => format!("\napproves  {}", roles.join(", ")),
        };
        format!(
            "token {} {:?} of {scope}\nidentity  {}\ngrants    {}{approves}\ncreated   {}{created_by}\nlast used {}\nends      {}",
            self.id,
            self.name,
            self.identity,
            self.grants.join(" "),
            time::show(self.created_at_ms),
            self.last_use(),
            self.end(),
        )
    }

    /// The hour of the last use.
    fn last_use(&self) -> String {
        self.last_used_at_ms
            .map_or_else(|| "never".to_owned(), time::show)
    }

    fn end(&self) -> String {
        match (self.revoked_at_ms, self.expires_at_ms) {
            (Some(revoked), _) => format!("revoked {}", time::show(revoked)),
            (None, Some(expires)) => time::show(expires),
            (None, None) => "never".to_owned(),
        }
    }
}

impl Row for TokenView {
    const HEADINGS: &'static [&'static str] =
        &["ID", "NAME", "IDENTITY", "GRANTS", "LAST USED", "ENDS"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            self.name.clone(),
            self.identity.clone(),
            self.grants.join(" "),
            self.last_use(),
            self.end(),
        ]
    }
}
