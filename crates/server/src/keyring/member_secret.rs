//! The secret that the calls between members carry without TLS (X14).
//!
//! It is derived from the active key, so it changes only with the keyring; no clock takes part. A node accepts the secrets of all
//! its keys while the cluster is closed.

use super::NodeKeyring;
use flotilla_engine::{AccessMode, Effect, view};
use flotilla_replica::{MemberRefusal, MemberSecret, MemberState, Notice};
use ring::hmac;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::watch;

/// The secret is the code of this text, made with a key that has no other use.
const TEXT: &[u8] = b"member";

const NO_KEYRING: MemberRefusal = MemberRefusal {
    message: "expected this node to have the keyring of its closed cluster, but it is missing, so this node cannot tell who is a member",
    hint: "set `keyring_file` on this node to the keyring that the other members have, and restart it",
};
const MISSING: MemberRefusal = MemberRefusal {
    message: "expected the secret of a member of the closed cluster, but the call carries none",
    hint: "if the caller is a node of the cluster, set its `keyring_file` to the keyring that the other members have",
};
const UNKNOWN: MemberRefusal = MemberRefusal {
    message: "expected the secret of a member of the closed cluster, but the call carries that of another keyring",
    hint: "if the caller is a node of the cluster, give it the same keyring as the other members; a new key must be on all nodes \
           before it is the first one",
};

/// Proves to members of a cluster without TLS that this node is one, and checks their calls.
#[derive(Debug)]
pub(crate) struct KeyringMemberSecret {
    keyring: Arc<NodeKeyring>,
    /// Whether the cluster is closed, or may be because its mode could not be read.
    is_closed: AtomicBool,
    changes: watch::Sender<u64>,
}

impl KeyringMemberSecret {
    /// Does not check calls until it follows the state of a closed cluster.
    pub(crate) fn new(keyring: Arc<NodeKeyring>) -> Self {
        Self {
            keyring,
            is_closed: AtomicBool::new(false),
            changes: watch::Sender::new(0),
        }
    }

    /// Reads the access mode. If that fails, callers must prove that they are members.
    fn refresh(&self, state: &MemberState) {
        let is_closed = match state.view(|reader| view::access(reader)) {
            Ok(Ok(access)) => access.is_some_and(|access| access.mode == AccessMode::Closed),
            Ok(Err(_)) | Err(_) => true,
        };
        let was_closed = self.is_closed.swap(is_closed, Ordering::SeqCst);
        if is_closed && !was_closed && self.keyring.is_empty() {
            tracing::error!(
                hint = NO_KEYRING.hint,
                "the cluster is closed, and this node has no keyring: it refuses the calls of members, and they refuse its calls"
            );
        }
        if is_closed != was_closed {
            self.note_change();
        }
    }

    fn note_change(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Follows the state and the keyring until the replica has ended.
    async fn follow_changes(&self, mut state: MemberState) {
        let mut keyrings = self.keyring.changes();
        loop {
            tokio::select! {
                notice = state.next() => match notice {
                    Some(Notice::Applied(batch)) => {
                        if batch.effects.contains(&Effect::AccessChanged) {
                            self.refresh(&state);
                        }
                    }
                    Some(Notice::Lost) => self.refresh(&state),
                    None => return,
                },
                Ok(()) = keyrings.changed() => self.note_change(),
            }
        }
    }
}

impl MemberSecret for KeyringMemberSecret {
    fn own(&self) -> Option<Vec<u8>> {
        let keyring = self.keyring.current();
        let secret = hmac::sign(&keyring.active()?.members, TEXT);
        Some(secret.as_ref().to_vec())
    }

    fn check(&self, shown: Option<&[u8]>) -> Result<(), MemberRefusal> {
        if !self.is_closed.load(Ordering::SeqCst) {
            return Ok(());
        }
        let keyring = self.keyring.current();
        if keyring.keys.is_empty() {
            return Err(NO_KEYRING);
        }
        let shown = shown.ok_or(MISSING)?;
        // Every key is tried, so that the time says nothing about which one it is.
        let matching = keyring.keys.iter();
        let matching = matching.filter(|key| hmac::verify(&key.members, TEXT, shown).is_ok());
        match matching.count() {
            0 => Err(UNKNOWN),
            _ => Ok(()),
        }
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn follow(self: Arc<Self>, state: MemberState) {
        // The state is read after the subscription began, so that no change is missed.
        self.refresh(&state);
        tokio::spawn(async move { self.follow_changes(state).await });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyring::{Keyring, SecretKey};

    fn member(keys: &[(&str, u8)]) -> KeyringMemberSecret {
        let keys = keys.iter();
        let key = |(id, byte): &(&str, u8)| SecretKey::new((*id).to_owned(), &[*byte; 32]);
        let keyring = Keyring {
            keys: keys.map(key).collect(),
        };
        let member = KeyringMemberSecret::new(Arc::new(NodeKeyring::of(keyring)));
        member.is_closed.store(true, Ordering::SeqCst);
        member
    }

    #[test]
    fn every_step_of_a_rotation_is_accepted_by_the_steps_beside_it() {
        let (old, new) = (("k1", 1), ("k2", 2));
        let steps: [&[(&str, u8)]; 4] = [&[old], &[old, new], &[new, old], &[new]];
        for pair in steps.windows(2) {
            let [one, other] = [member(pair[0]), member(pair[1])];
            assert_eq!(one.check(other.own().as_deref()), Ok(()), "{pair:?}");
            assert_eq!(other.check(one.own().as_deref()), Ok(()), "{pair:?}");
        }
        let skipped = member(steps[2]).own();
        assert_eq!(member(steps[0]).check(shown(&skipped)), Err(UNKNOWN));
    }

    fn shown(secret: &Option<Vec<u8>>) -> Option<&[u8]> {
        secret.as_deref()
    }

    #[test]
    fn a_closed_cluster_needs_the_secret_and_an_open_one_does_not() {
        let closed = member(&[("k1", 1)]);
        for wrong in [None, Some(&b""[..]), Some(&[0; 32])] {
            let expected = if wrong.is_none() { MISSING } else { UNKNOWN };
            assert_eq!(closed.check(wrong), Err(expected));
        }
        closed.is_closed.store(false, Ordering::SeqCst);
        assert_eq!(closed.check(None), Ok(()));
        let without = member(&[]);
        assert_eq!(without.own(), None);
        assert_eq!(without.check(shown(&closed.own())), Err(NO_KEYRING));
    }

    #[test]
    fn the_secret_is_the_one_that_is_published_and_not_the_code_of_a_token() {
        let secret = member(&[("k1", 7)]).own().expect("it has a key");
        let key = SecretKey::new("k1".to_owned(), &[7; 32]);
        assert_ne!(secret, hmac::sign(&key.task_tokens, TEXT).as_ref());
        assert_eq!(secret.len(), 32);
    }
}
