//! Callers outside the cluster: clients that make requests, workers that do the work.

mod caller;
mod client;
mod credential_owner;
mod operator;
mod worker;
mod workload;

pub(crate) use caller::Caller;
pub(crate) use client::{Client, Load};
pub(crate) use credential_owner::{CredentialOwner, written_key_of};
pub(crate) use operator::operate;
pub(crate) use worker::Worker;
pub(crate) use workload::{INVOKED, LEASE_MS, action, invoke, key, register_action, set};
