//! The tokens that were created with a token, with those, and so on.

use crate::commands::listing::{PAGE_ROWS, all_pages};
use crate::failure::Failure;
use flotilla_client::Client;
use flotilla_client::v1::{
    ListClusterTokensRequest, ListNamespacesRequest, ListTokensRequest, Namespace, Token,
};
use std::collections::BTreeSet;

/// A token, and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScopedToken {
    pub(super) id: String,
    /// `None` for a token of the cluster.
    pub(super) namespace: Option<String>,
}

/// The descendants of the token that were not revoked and have not expired at `now_ms`, as far as the caller may list them. A token
/// of a namespace creates tokens of that namespace alone. What was created with a token whose record the cluster has deleted,
/// 30 days after its end, is not found.
pub(super) async fn descendants_of(
    client: &Client,
    root: &ScopedToken,
    now_ms: u64,
) -> Result<Vec<ScopedToken>, Failure> {
    let tokens = match &root.namespace {
        Some(namespace) => tokens_of(client, namespace).await?,
        None => {
            let mut tokens = tokens_of_cluster(client).await?;
            for namespace in namespaces(client).await? {
                tokens.extend(tokens_of(client, &namespace.name).await?);
            }
            tokens
        }
    };
    Ok(descendants(&root.id, tokens, now_ms))
}

async fn tokens_of(client: &Client, namespace: &str) -> Result<Vec<Token>, Failure> {
    all_pages(async |page_token| {
        let request = ListTokensRequest {
            namespace: namespace.to_owned(),
            limit: PAGE_ROWS,
            page_token,
        };
        let page = client.list_tokens(request).await?;
        Ok((page.items, page.next_page_token))
    })
    .await
}

async fn tokens_of_cluster(client: &Client) -> Result<Vec<Token>, Failure> {
    all_pages(async |page_token| {
        let limit = PAGE_ROWS;
        let request = ListClusterTokensRequest { limit, page_token };
        let page = client.list_cluster_tokens(request).await?;
        Ok((page.items, page.next_page_token))
    })
    .await
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

/// Those of the tokens that descend from this one and have not ended.
fn descendants(root: &str, tokens: Vec<Token>, now_ms: u64) -> Vec<ScopedToken> {
    let mut family = BTreeSet::from([root.to_owned()]);
    loop {
        let children = tokens.iter().filter(|token| {
            let parent = token.created_by.as_ref();
            parent.is_some_and(|parent| family.contains(parent)) && !family.contains(&token.id)
        });
        let children: Vec<String> = children.map(|token| token.id.clone()).collect();
        if children.is_empty() {
            break;
        }
        family.extend(children);
    }
    let valid = tokens.into_iter().filter(|token| {
        let has_expired = token.expires_at_ms.is_some_and(|end_ms| end_ms <= now_ms);
        let has_ended = has_expired || token.revoked_at_ms.is_some();
        token.id != root && !has_ended && family.contains(&token.id)
    });
    valid
        .map(|token| ScopedToken {
            id: token.id,
            namespace: Some(token.namespace).filter(|name| !name.is_empty()),
        })
        .collect()
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
        let found: Vec<String> = descendants("root", tokens, 5)
            .into_iter()
            .map(|token| token.id)
            .collect();
        assert_eq!(found, ["grandchild"]);
    }
}
