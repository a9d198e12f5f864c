//! API tokens that callers show (X6).

use flotilla_api::token;
use flotilla_engine::ids::TokenId;
use flotilla_engine::{BootstrapToken, SecretHash};

/// An API token that a caller shows: the digest of its secret only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ApiToken {
    pub(super) id: TokenId,
    pub(super) secret: SecretHash,
}

impl ApiToken {
    /// Parses the text; `None` if it has another form, or if its checksum is wrong.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let parts = token::ApiToken::parts(text)?;
        Some(Self {
            id: TokenId::parse(parts.id)?,
            secret: SecretHash(parts.secret_sha256),
        })
    }

    /// Whether this is the bootstrap token of a new cluster.
    pub(super) fn is(self, bootstrap: BootstrapToken) -> bool {
        self.id == bootstrap.id && constant_time_eq(self.secret, bootstrap.secret)
    }
}

/// Compares in a time that does not depend on where the two differ.
pub(super) fn constant_time_eq(one: SecretHash, other: SecretHash) -> bool {
    let pairs = one.0.iter().zip(&other.0);
    pairs.fold(0, |difference, (one, other)| difference | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_needs_an_id_of_tokens() {
        let secret = token::TokenSecret::draw();
        let digest = secret.sha256();
        let parsed = ApiToken::parse(secret.into_token("aaaaaaaabb").expose()).expect("a token");
        assert_eq!(parsed.id, TokenId::from_bits(33));
        assert_eq!(parsed.secret.0, *digest);
        let other_id = token::TokenSecret::draw().into_token("aaaaaaaab1");
        assert_eq!(ApiToken::parse(other_id.expose()), None);
    }
}
