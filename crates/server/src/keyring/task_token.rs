//! Task tokens with a message authentication code, MAC (X31).
//!
//! The log has the part of a token that the engine compares. The MAC is made and verified by nodes, and is in no log, so a
//! stolen log or backup contains no usable token, and no worker can compute the token of another task. The text does not
//! contain the cluster id: a cluster that is restored from a backup accepts the reports on tasks that are still out.

use super::NodeKeyring;
use crate::errors::{Refusal, ServerCode};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_engine::{TaskToken, TokenInvalid};
use ring::hmac;

/// How many parts, divided by dots, a token has without a MAC.
const PARTS: usize = 3;

/// A task token that a caller shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownTaskToken {
    /// The token.
    pub(crate) token: TaskToken,
    /// Whether it has a valid MAC.
    pub(crate) is_authentic: bool,
}

/// A task token as it is written: a token, and perhaps the id of a key and a MAC.
struct Written<'t> {
    token: &'t str,
    mac: Option<(&'t str, &'t str)>,
}

impl<'t> Written<'t> {
    fn split(text: &'t str) -> Result<Self, TokenInvalid> {
        let Some((end, _)) = text.match_indices('.').nth(PARTS - 1) else {
            return Ok(Self {
                token: text,
                mac: None,
            });
        };
        let mac = text[end + 1..].split_once('.').ok_or(TokenInvalid)?;
        Ok(Self {
            token: &text[..end],
            mac: Some(mac),
        })
    }
}

impl ShownTaskToken {
    /// Which task a token is about, whatever its MAC: for a caller that shows another proof of its right.
    pub(crate) fn unverified(text: &str) -> Result<TaskToken, TokenInvalid> {
        Written::split(text)?.token.parse()
    }
}

impl NodeKeyring {
    /// The token as a worker gets it: with a MAC, if this node has keys.
    pub(crate) fn task_token_text(&self, token: &TaskToken) -> String {
        let text = token.to_string();
        match self.current().active() {
            None => text,
            Some(key) => {
                let mac = hmac::sign(&key.task_tokens, text.as_bytes());
                let mac = URL_SAFE_NO_PAD.encode(mac);
                format!("{text}.{}.{mac}", key.id)
            }
        }
    }

    /// Verifies the token that a caller shows, before anything is looked up.
    ///
    /// # Errors
    /// It is malformed, its MAC is wrong, or this node does not have the key of its MAC.
    pub(crate) fn verify_task_token(&self, text: &str) -> Result<ShownTaskToken, Refusal> {
        let malformed = |error: TokenInvalid| Refusal::invalid("task_token", error.to_string());
        let written = Written::split(text).map_err(malformed)?;
        let token = written.token.parse().map_err(malformed)?;
        let Some((key_id, mac)) = written.mac else {
            return Ok(ShownTaskToken {
                token,
                is_authentic: false,
            });
        };
        let keyring = self.current();
        let key = keyring.find(key_id).ok_or_else(key_unavailable)?;
        let mac = URL_SAFE_NO_PAD.decode(mac).map_err(|_| wrong())?;
        hmac::verify(&key.task_tokens, written.token.as_bytes(), &mac).map_err(|_| wrong())?;
        Ok(ShownTaskToken {
            token,
            is_authentic: true,
        })
    }
}

fn key_unavailable() -> Refusal {
    let text = "expected a task token whose key this node has, but the key is missing";
    Refusal::new(ServerCode::KeyUnavailable, text)
        .with_hint("retry at another node; all nodes need the same `keyring_file`")
}

fn wrong() -> Refusal {
    let text = "expected a valid task token, but its MAC is wrong";
    Refusal::new(ServerCode::TaskTokenWrong, text)
        .with_hint("use the token exactly as the worker received it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyring::{Keyring, SecretKey};
    use flotilla_engine::ids::ActionRunNumber;

    const TOKEN: TaskToken = TaskToken {
        action_run: ActionRunNumber(7),
        attempt: 2,
        secret: 0xabc,
    };

    fn node(keys: &[(&str, u8)]) -> NodeKeyring {
        let keys = keys.iter();
        let key = |(id, byte): &(&str, u8)| SecretKey::new((*id).to_owned(), &[*byte; 32]);
        let keyring = Keyring {
            keys: keys.map(key).collect(),
        };
        NodeKeyring::of(keyring)
    }

    fn code(shown: Result<ShownTaskToken, Refusal>) -> &'static str {
        shown.expect_err("it is refused").reason()
    }

    #[test]
    fn a_token_has_the_mac_that_is_published() {
        let text = node(&[("k1", 7)]).task_token_text(&TOKEN);
        assert_eq!(
            text,
            "arun-7.2.0000000000000abc.k1.cO7mUgtqNr6HzkqxROFZGjVKz681Z2j8UOohGSHVtwY"
        );
    }

    #[test]
    fn a_node_accepts_the_macs_of_all_its_keys() {
        let text = node(&[("k1", 1)]).task_token_text(&TOKEN);
        let authentic = ShownTaskToken {
            token: TOKEN,
            is_authentic: true,
        };
        for keys in [&[("k1", 1)][..], &[("k2", 2), ("k1", 1)]] {
            let shown = node(keys).verify_task_token(&text);
            assert_eq!(shown.expect("it has the key"), authentic);
        }
        assert_eq!(ShownTaskToken::unverified(&text), Ok(TOKEN));
        let without = node(&[]).verify_task_token(&text);
        assert_eq!(code(without), "key_unavailable");
        let other = node(&[("k1", 2)]).verify_task_token(&text);
        assert_eq!(code(other), "task_token_wrong");
    }

    #[test]
    fn a_token_without_a_mac_is_not_authentic() {
        for keys in [&[][..], &[("k1", 1)]] {
            let bare = TOKEN.to_string();
            let shown = node(keys).verify_task_token(&bare).expect("it is a token");
            assert_eq!((shown.token, shown.is_authentic), (TOKEN, false));
        }
        assert_eq!(node(&[]).task_token_text(&TOKEN), TOKEN.to_string());
    }

    #[test]
    fn no_part_of_a_token_can_be_changed() {
        let node = node(&[("k1", 1), ("k2", 2)]);
        let text = node.task_token_text(&TOKEN);
        for (from, to) in [
            ("arun-7.", "arun-8."),
            (".2.", ".3."),
            ("0abc", "0abd"),
            (".k1.", ".k2."),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text);
            assert_eq!(code(node.verify_task_token(&changed)), "task_token_wrong");
        }
        for changed in [format!("{text}A"), text[..text.len() - 1].to_owned()] {
            assert_eq!(code(node.verify_task_token(&changed)), "task_token_wrong");
        }
        for malformed in ["arun-7.2.0000000000000abc.k1", "arun-7.2", &text[1..], ""] {
            let refused = node.verify_task_token(malformed);
            assert_eq!(code(refused), "invalid_argument", "{malformed}");
        }
    }
}
