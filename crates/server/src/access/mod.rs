//! Access at the edge: who calls, and whether it may (X6, X8, X9, X16, X21).
//!
//! A call is authenticated once, before its handler: [`CallContext::of`]. The handler gets a gateway that submits commands
//! and reads on behalf of the caller, so it cannot forget to check. The engine judges each command again at its log entry.

mod api_token;
mod authenticate;
mod bootstrap_token;
mod call_context;
mod caller_checks;
mod calls_without_token;
mod initial_access;
mod long_lived_call;
mod needs;
mod open_warning;
mod recovery;
mod token_uses;
mod unknown_credentials;

pub use bootstrap_token::{ensure_bootstrap_token, generate_bootstrap_token};
pub use recovery::{AccessRecovery, AccessRecoveryRequest};

pub(crate) use call_context::CallContext;
pub(crate) use caller_checks::{CallerChecks, certificate_missing};
pub(crate) use calls_without_token::CallKind;
pub(crate) use initial_access::{InitialAccess, InitialAccessConfig, not_initialized};
pub(crate) use long_lived_call::credential_ended;
pub(crate) use needs::Needs;
pub(crate) use open_warning::{is_open_beyond_loopback, start as start_open_warning};
pub(crate) use recovery::start as start_recovery;
pub(crate) use token_uses::start as start_token_uses;
