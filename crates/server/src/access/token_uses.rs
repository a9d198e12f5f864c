//! Reports when API tokens were used last (X7).

use crate::context::Context;
use crate::limits::{DEADLINE_DEFAULT, TOKEN_USES_INTERVAL};
use flotilla_engine::ids::TokenId;
use flotilla_engine::limits::{TOKEN_USE_MS, TOKEN_USES_MAX};
use flotilla_engine::{Command, RecordTokenUses, reply};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

/// The tokens with which callers of a node were admitted. The cluster has them, so their number is bounded.
#[derive(Debug, Default)]
pub(crate) struct TokenUses {
    // A std lock and not tokio's because it is never held across an await.
    current: Mutex<Period>,
}

/// What was shown in a period of [`TOKEN_USE_MS`].
#[derive(Debug, Default)]
struct Period {
    number: u64,
    /// Whether each use is reported.
    tokens: HashMap<TokenId, bool>,
}

/// Uses that are not reported.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unreported {
    period: u64,
    tokens: Vec<TokenId>,
}

impl TokenUses {
    /// Records that a caller was admitted with the token.
    pub(super) fn record(&self, token: TokenId, now_ms: u64) {
        let number = now_ms / TOKEN_USE_MS;
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.number != number {
            *current = Period {
                number,
                tokens: HashMap::new(),
            };
        }
        current.tokens.entry(token).or_insert(false);
    }

    /// The tokens whose use is not reported, as many as one command may name.
    fn unreported(&self) -> Unreported {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = current.tokens.iter();
        let unreported = tokens.filter(|(_, is_reported)| !**is_reported);
        let unreported = unreported.map(|(token, _)| *token);
        Unreported {
            period: current.number,
            tokens: unreported.take(TOKEN_USES_MAX).collect(),
        }
    }

    /// Notes that these uses are reported. Those of the next period are not.
    fn set_reported(&self, reported: &Unreported) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.number != reported.period {
            return;
        }
        for token in &reported.tokens {
            if let Some(is_reported) = current.tokens.get_mut(token) {
                *is_reported = true;
            }
        }
    }
}

/// Reports the tokens that were shown, until the node stops.
pub(crate) fn start(context: Arc<Context>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let shutdown = context.shutdown.clone();
        let reporting = async {
            loop {
                sleep(TOKEN_USES_INTERVAL).await;
                report(&context).await;
            }
        };
        shutdown.run_until_cancelled(reporting).await;
    })
}

/// Reports once. What cannot be reported now is reported later.
async fn report(context: &Context) {
    let uses = &context.caller_checks.token_uses;
    loop {
        let unreported = uses.unreported();
        if unreported.tokens.is_empty() {
            return;
        }
        let command = Command::of_cluster(RecordTokenUses {
            tokens: unreported.tokens.clone(),
        });
        let deadline = Instant::now() + DEADLINE_DEFAULT;
        match context.node_gateway.submit(command, deadline).await {
            Ok(reply::Done {}) => uses.set_reported(&unreported),
            Err(refusal) => {
                tracing::debug!(%refusal, "the use of tokens is reported later");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_reported_once_in_each_period() {
        let uses = TokenUses::default();
        let token = TokenId::from_bits(1);
        assert!(uses.unreported().tokens.is_empty());
        for now_ms in [0, 5, TOKEN_USE_MS - 1] {
            uses.record(token, now_ms);
            assert_eq!(uses.unreported().tokens, [token]);
        }
        let first = uses.unreported();
        uses.set_reported(&first);
        uses.record(token, TOKEN_USE_MS - 1);
        assert!(uses.unreported().tokens.is_empty());
        uses.record(token, TOKEN_USE_MS);
        // Late: another period has begun.
        uses.set_reported(&first);
        assert_eq!(uses.unreported().tokens, [token]);
    }

    #[test]
    fn a_command_names_no_more_tokens_than_it_may() {
        let uses = TokenUses::default();
        let count = TOKEN_USES_MAX as u64 + 1;
        for bits in 0..count {
            uses.record(TokenId::from_bits(bits), 0);
        }
        let first = uses.unreported();
        assert_eq!(first.tokens.len(), TOKEN_USES_MAX);
        uses.set_reported(&first);
        assert_eq!(uses.unreported().tokens.len(), 1);
    }
}
