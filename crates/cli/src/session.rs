//! What a verb works with: the cluster and the output.

use crate::arguments::Globals;
use crate::failure::Failure;
use crate::output::Output;
use flotilla_client::{Client, ClientOptions};
use std::time::Duration;

/// The global flags, put to use.
#[derive(Debug)]
pub(crate) struct Session {
    /// Where to print.
    pub(crate) output: Output,
    endpoints: Vec<String>,
    namespace: String,
    timeout: Duration,
}

impl Session {
    /// Takes up the flags.
    pub(crate) fn new(globals: Globals) -> Self {
        Self {
            output: Output::new(globals.format),
            endpoints: globals.endpoint,
            namespace: globals.namespace.unwrap_or_default(),
            timeout: globals.timeout,
        }
    }

    /// A client of the cluster. Connects when it is first used.
    ///
    /// # Errors
    /// `usage` for an endpoint that is none.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::connect(ClientOptions {
            endpoints: self.endpoints.clone(),
            namespace: self.namespace.clone(),
            timeout: self.timeout,
            ..ClientOptions::default()
        })?)
    }
}
