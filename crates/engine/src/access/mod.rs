//! Access: who may do what (X1, X7, X11, X17, X20).
//!
//! Every command has an [`Actor`]. Before anything else, the engine judges whether the actor may have the command carried
//! out, on the state at that entry ([`authorize`]). Servers judge calls with the same function ([`judge`]), to refuse them
//! early and to judge reads. Secrets are checked by servers alone: the state has only their digests.

mod actor;
mod administrator;
mod authority;
mod authorize;
mod bind_subject;
mod binding_subject;
mod bindings;
mod block_subject;
mod create_token;
mod credentials;
mod grant;
mod initialize;
mod judge;
mod mode;
mod permission;
mod record_token_uses;
mod recover;
mod revoke_token;
mod role;
mod rotate_token;
mod secret;
mod set_mode;
mod tokens;

pub use actor::{Actor, BoundActor};
pub use bind_subject::{BindSubject, UnbindSubject};
pub use binding_subject::{BindingSubject, BindingSubjectInvalid};
pub use block_subject::{BlockSubject, UnblockSubject};
pub use create_token::CreateToken;
pub use grant::{Grant, GrantInvalid, NamespacePattern};
pub use initialize::{BootstrapToken, InitializeAccess};
pub use judge::Needed;
pub use mode::AccessMode;
pub use permission::{Permission, PermissionSet};
pub use record_token_uses::RecordTokenUses;
pub use recover::RecoverAccess;
pub use revoke_token::RevokeToken;
pub use role::{ClusterRole, NamespaceRole};
pub use rotate_token::RotateToken;
pub use secret::SecretHash;
pub use set_mode::SetAccessMode;

pub(crate) use authority::Authority;
pub(crate) use authorize::{authorize, judge_command};
pub(crate) use credentials::{Holder, credentials_left, holder_of, identity_of};
pub(crate) use judge::{has_grant_in, is_closed, judge, judge_credential, judge_turn};
pub(crate) use tokens::remove_ended_tokens;
