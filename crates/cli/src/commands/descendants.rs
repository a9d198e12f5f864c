//! The credentials that were created with a credential, with those, and so on.

use crate::commands::listing::{PAGE_ROWS, all_pages};
use crate::failure::Failure;
use flotilla_client::Client;
use flotilla_client::v1::{
    Binding, ListBindingsRequest, ListClusterBindingsRequest, ListClusterTokensRequest,
    ListNamespacesRequest, ListTokensRequest, Namespace, RevokeClusterTokenRequest,
    RevokeTokenRequest, Token, UnbindClusterSubjectRequest, UnbindSubjectRequest,
};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// A token or the binding of a subject.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Credential {
    kind: Kind,
    /// The id of the token, or the subject.
    name: String,
    /// Where it belongs; `None` for the cluster.
    namespace: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Token,
    Binding,
}

/// The credentials that a command has ended, and those that are left.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Descent {
    /// What the command has ended besides what it names.
    tree: Vec<Credential>,
    /// The valid credentials that were created with it, with those, and so on; empty with `--tree`. `None` if the caller may not
    /// list them.
    valid_descendants: Option<Vec<Credential>>,
}

/// All credentials in the namespaces that the caller sees.
#[derive(Default)]
struct Credentials {
    tokens: Vec<Token>,
    bindings: Vec<Binding>,
}

impl fmt::Display for Credential {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match (self.kind, &self.namespace) {
            (Kind::Token, _) => Ok(()),
            (Kind::Binding, Some(namespace)) => write!(formatter, " in namespace {namespace}"),
            (Kind::Binding, None) => formatter.write_str(" in the cluster"),
        }
    }
}

impl Credential {
    /// A token of a namespace, or without one of the cluster.
    pub(crate) fn token(id: String, namespace: Option<String>) -> Self {
        Self {
            kind: Kind::Token,
            name: id,
            namespace,
        }
    }

    /// The binding of a subject in a namespace, or without one in the cluster.
    pub(crate) fn binding(subject: String, namespace: Option<String>) -> Self {
        Self {
            kind: Kind::Binding,
            name: subject,
            namespace,
        }
    }

    /// Whether it is the author of another credential, which names it so.
    fn may_have_made(&self, other: &Self, author: &str) -> bool {
        self.name == author && (self.namespace.is_none() || self.namespace == other.namespace)
    }

    /// Ends it; false if it had ended.
    pub(crate) async fn end(&self, client: &Client) -> Result<bool, Failure> {
        let name = self.name.clone();
        match (self.kind, self.namespace.clone()) {
            (Kind::Token, None) => {
                let request = RevokeClusterTokenRequest {
                    id: name,
                    ..RevokeClusterTokenRequest::default()
                };
                Ok(client.revoke_cluster_token(request).await?.revoked)
            }
            (Kind::Token, Some(namespace)) => {
                let request = RevokeTokenRequest {
                    id: name,
                    namespace,
                    ..RevokeTokenRequest::default()
                };
                Ok(client.revoke_token(request).await?.revoked)
            }
            (Kind::Binding, None) => {
                let request = UnbindClusterSubjectRequest {
                    subject: name,
                    ..UnbindClusterSubjectRequest::default()
                };
                client.unbind_cluster_subject(request).await?;
                Ok(true)
            }
            (Kind::Binding, Some(namespace)) => {
                let request = UnbindSubjectRequest {
                    subject: name,
                    namespace,
                    ..UnbindSubjectRequest::default()
                };
                client.unbind_subject(request).await?;
                Ok(true)
            }
        }
    }
}

impl Descent {
    /// Ends what descends from a credential that was ended, if this is the whole tree, and otherwise lists it.
    pub(crate) async fn of(
        client: &Client,
        root: &Credential,
        (is_tree, now_ms): (bool, u64),
    ) -> Result<Self, Failure> {
        if is_tree {
            let tree = end_descendants(client, root).await.map_err(|failure| {
                let hint = "the command has ended what it names, but perhaps not all that was created with it: repeat the command, \
                            with another credential if you have ended your own";
                failure.with_hint(hint)
            })?;
            return Ok(Self {
                tree,
                valid_descendants: Some(Vec::new()),
            });
        }
        // An error here is not one of the command: a caller that ends its own credential cannot list others afterwards.
        let found = Credentials::seen_from(client, root).await.ok();
        Ok(Self {
            tree: Vec::new(),
            valid_descendants: found.map(|found| found.descendants_of(root, now_ms)),
        })
    }

    /// The lines of the output.
    pub(crate) fn lines(&self) -> Vec<String> {
        let ended = self.tree.iter();
        let mut lines: Vec<String> = ended
            .map(|one| match one.kind {
                Kind::Token => format!("{one} revoked"),
                Kind::Binding => format!("{one} unbound"),
            })
            .collect();
        match self.valid_descendants.as_deref() {
            None => lines.push(
                "what was created with it may still be valid: you may not list it".to_owned(),
            ),
            Some([]) => {}
            Some(valid) => {
                let names: Vec<String> = valid.iter().map(ToString::to_string).collect();
                lines.push(format!(
                    "still valid, but created with it: {}; --tree ends them too ({} in total)",
                    names.join(", "),
                    valid.len()
                ));
            }
        }
        lines
    }
}

/// Ends the descendants of a credential that was ended, and returns them.
async fn end_descendants(client: &Client, root: &Credential) -> Result<Vec<Credential>, Failure> {
    let mut ended = Vec::new();
    loop {
        // Those that have expired by the clock of this machine too: it may be ahead.
        let found = Credentials::seen_from(client, root).await?;
        let mut descendants = found.descendants_of(root, 0);
        descendants.retain(|one| !ended.contains(one));
        if descendants.is_empty() {
            return Ok(ended);
        }
        // Each of them may have created further ones until it was ended, so look again.
        for descendant in descendants {
            descendant.end(client).await?;
            ended.push(descendant);
        }
    }
}

impl Credentials {
    /// The credentials that may descend from this one, as far as the caller may list them. A credential of a namespace creates only
    /// those of that namespace.
    async fn seen_from(client: &Client, root: &Credential) -> Result<Self, Failure> {
        let mut found = Self::default();
        if let Some(namespace) = &root.namespace {
            found.add_namespace(client, namespace).await?;
            return Ok(found);
        }
        found.add_cluster(client).await?;
        for namespace in namespaces(client).await? {
            found.add_namespace(client, &namespace.name).await?;
        }
        Ok(found)
    }

    async fn add_namespace(&mut self, client: &Client, namespace: &str) -> Result<(), Failure> {
        let tokens = all_pages(async |page_token| {
            let request = ListTokensRequest {
                namespace: namespace.to_owned(),
                limit: PAGE_ROWS,
                page_token,
            };
            let page = client.list_tokens(request).await?;
            Ok((page.items, page.next_page_token))
        });
        self.tokens.extend(tokens.await?);
        let bindings = all_pages(async |page_token| {
            let request = ListBindingsRequest {
                namespace: namespace.to_owned(),
                limit: PAGE_ROWS,
                page_token,
            };
            let page = client.list_bindings(request).await?;
            Ok((page.items, page.next_page_token))
        });
        self.bindings.extend(bindings.await?);
        Ok(())
    }

    async fn add_cluster(&mut self, client: &Client) -> Result<(), Failure> {
        let limit = PAGE_ROWS;
        let tokens = all_pages(async |page_token| {
            let request = ListClusterTokensRequest { limit, page_token };
            let page = client.list_cluster_tokens(request).await?;
            Ok((page.items, page.next_page_token))
        });
        self.tokens.extend(tokens.await?);
        let bindings = all_pages(async |page_token| {
            let request = ListClusterBindingsRequest { limit, page_token };
            let page = client.list_cluster_bindings(request).await?;
            Ok((page.items, page.next_page_token))
        });
        self.bindings.extend(bindings.await?);
        Ok(())
    }

    /// Those that descend from this one and have not ended at `now_ms`. A binding of a namespace gives rights in it alone, so only
    /// what its subject has created there descends from it. What was created with a token whose record the cluster has deleted, 30
    /// days after its end, or by a subject that is no longer bound, is not found.
    fn descendants_of(&self, root: &Credential, now_ms: u64) -> Vec<Credential> {
        let tokens = self.tokens.iter().map(|token| {
            let has_expired = token.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms);
            let has_ended = has_expired || token.revoked_at_ms.is_some();
            let credential = Credential::token(token.id.clone(), scope(&token.namespace));
            (credential, token.created_by.as_deref(), has_ended)
        });
        let bindings = self.bindings.iter().map(|one| {
            let credential = Credential::binding(one.subject.clone(), scope(&one.namespace));
            (credential, one.changed_by.as_deref(), false)
        });
        let all: Vec<_> = tokens.chain(bindings).collect();
        let mut family = BTreeSet::from([root]);
        loop {
            let made = all.iter().filter(|(credential, author, _)| {
                author.is_some_and(|author| {
                    family
                        .iter()
                        .any(|one| one.may_have_made(credential, author))
                })
            });
            let made: Vec<&Credential> = made.map(|(credential, ..)| credential).collect();
            let known = family.len();
            family.extend(made);
            if family.len() == known {
                break;
            }
        }
        let valid = all.iter().filter(|(credential, _, has_ended)| {
            credential != root && !has_ended && family.contains(credential)
        });
        valid.map(|(credential, ..)| credential.clone()).collect()
    }
}

/// The namespace of a record; `None` for the cluster.
fn scope(namespace: &str) -> Option<String> {
    Some(namespace.to_owned()).filter(|name| !name.is_empty())
}

async fn namespaces(client: &Client) -> Result<Vec<Namespace>, Failure> {
    all_pages(async |page_token| {
        let limit = PAGE_ROWS;
        let request = ListNamespacesRequest { limit, page_token };
        let page = client.list_namespaces(request).await?;
        Ok((page.items, page.next_page_token))
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: &str, parent: Option<&str>, revoked_at_ms: Option<u64>) -> Token {
        Token {
            id: id.to_owned(),
            created_by: parent.map(str::to_owned),
            revoked_at_ms,
            ..Token::default()
        }
    }

    fn binding(subject: &str, namespace: &str, parent: &str) -> Binding {
        Binding {
            subject: subject.to_owned(),
            namespace: namespace.to_owned(),
            changed_by: Some(parent.to_owned()),
            ..Binding::default()
        }
    }

    fn names(credentials: &Credentials, root: &Credential) -> Vec<String> {
        let found = credentials.descendants_of(root, 5).into_iter();
        found.map(|one| one.to_string()).collect()
    }

    #[test]
    fn descendants_are_found_through_tokens_that_have_ended() {
        let tokens = vec![
            token("grandchild", Some("child"), None),
            token("root", None, Some(1)),
            token("child", Some("root"), Some(2)),
            token("other", None, None),
            Token {
                expires_at_ms: Some(5),
                ..token("expired", Some("child"), None)
            },
            token("niece", Some("other"), None),
        ];
        let credentials = Credentials {
            tokens,
            bindings: Vec::new(),
        };
        let root = Credential::token("root".to_owned(), None);
        assert_eq!(names(&credentials, &root), ["grandchild"]);
    }

    #[test]
    fn descendants_are_found_through_bindings() {
        let credentials = Credentials {
            tokens: vec![
                Token {
                    namespace: "shop".to_owned(),
                    ..token("made-by-till", Some("cert:dns:till"), None)
                },
                // Its author has the rights to it from another binding.
                token("elsewhere", Some("cert:dns:till"), None),
                token("root", None, Some(1)),
                token("other", None, None),
            ],
            bindings: vec![
                binding("cert:dns:till", "shop", "root"),
                binding("cert:dns:child", "shop", "made-by-till"),
                binding("cert:dns:other", "shop", "other"),
            ],
        };
        let root = Credential::token("root".to_owned(), None);
        let expected = [
            "made-by-till",
            "cert:dns:till in namespace shop",
            "cert:dns:child in namespace shop",
        ];
        assert_eq!(names(&credentials, &root), expected);
        let till = Credential::binding("cert:dns:till".to_owned(), None);
        let expected = [
            "made-by-till",
            "elsewhere",
            "cert:dns:till in namespace shop",
            "cert:dns:child in namespace shop",
        ];
        let bound_by_itself = Credentials {
            bindings: vec![
                binding("cert:dns:till", "shop", "cert:dns:till"),
                binding("cert:dns:till", "", "root"),
                binding("cert:dns:child", "shop", "made-by-till"),
            ],
            ..credentials
        };
        assert_eq!(names(&bound_by_itself, &till), expected);
    }
}
