//! The connections of a load.

use crate::failure::Failure;
use crate::session::Session;
use flotilla_client::Client;

/// A few connections to each node, shared by all clients, so that calls of several clients share a
/// network write.
#[derive(Clone, Debug)]
pub(in super::super) struct Connections {
    clients: Vec<Client>,
}

impl Connections {
    /// Opens this many connections, at least one.
    ///
    /// # Errors
    /// As [`Session::client`].
    pub(in super::super) fn open(session: &Session, count: u16) -> Result<Self, Failure> {
        let open = |_| session.untraced_client();
        let clients = (0..count.max(1)).map(open).collect::<Result<_, _>>()?;
        Ok(Self { clients })
    }

    /// A placeholder that is never used.
    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        let client = Client::connect(flotilla_client::ClientOptions::default());
        Self {
            clients: vec![client.expect("the default is an endpoint")],
        }
    }

    /// The first connection.
    pub(in super::super) fn first(&self) -> &Client {
        &self.clients[0]
    }

    /// The connection of the client with this number.
    pub(in super::super) fn of(&self, number: u16) -> Client {
        self.clients[usize::from(number) % self.clients.len()].clone()
    }
}
