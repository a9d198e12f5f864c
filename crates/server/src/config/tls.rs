//! The TLS files of a node's configuration.

use super::{ClientCertificates, ConfigInvalid, ServerConfig};
use crate::tls::{NodeTlsFiles, TlsFiles, TlsKeys};
use std::path::PathBuf;

/// The keys of the TLS files.
const CLIENT_TLS: TlsKeys = TlsKeys {
    cert: "tls_cert",
    key: "tls_key",
    ca: "tls_ca",
};

/// The keys of those for peers.
const PEER_TLS: TlsKeys = TlsKeys {
    cert: "tls_peer_cert",
    key: "tls_peer_key",
    ca: "tls_peer_ca",
};

impl ServerConfig {
    /// The TLS files, if TLS is configured.
    pub(crate) fn tls_files(&self) -> Option<NodeTlsFiles> {
        let clients = TlsFiles {
            keys: CLIENT_TLS,
            cert: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            ca: self.tls_ca.clone()?,
        };
        let has_others = self.peer_tls().iter().any(|(_, file)| file.is_some());
        let peers = has_others.then(|| self.peer_tls_files(&clients));
        Some(NodeTlsFiles { clients, peers })
    }

    /// The TLS files for peers: those for clients, unless others are configured.
    fn peer_tls_files(&self, clients: &TlsFiles) -> TlsFiles {
        let mut peers = clients.clone();
        if let (Some(cert), Some(key)) = (&self.tls_peer_cert, &self.tls_peer_key) {
            (peers.cert, peers.key) = (cert.clone(), key.clone());
            (peers.keys.cert, peers.keys.key) = (PEER_TLS.cert, PEER_TLS.key);
        }
        if let Some(ca) = &self.tls_peer_ca {
            (peers.ca, peers.keys.ca) = (ca.clone(), PEER_TLS.ca);
        }
        peers
    }

    fn peer_tls(&self) -> [(&'static str, &Option<PathBuf>); 3] {
        [
            (PEER_TLS.cert, &self.tls_peer_cert),
            (PEER_TLS.key, &self.tls_peer_key),
            (PEER_TLS.ca, &self.tls_peer_ca),
        ]
    }

    /// Checks that the files are complete.
    ///
    /// # Errors
    /// [`ConfigInvalid`] names what is missing.
    pub(super) fn check_tls(&self) -> Result<(), ConfigInvalid> {
        let files = [
            (CLIENT_TLS.cert, &self.tls_cert),
            (CLIENT_TLS.key, &self.tls_key),
            (CLIENT_TLS.ca, &self.tls_ca),
        ];
        let is_plain = files.iter().all(|(_, file)| file.is_none());
        if is_plain && self.client_certificates == ClientCertificates::Required {
            return Err(ConfigInvalid::ClientCertificatesWithoutTls);
        }
        match files.into_iter().find(|(_, file)| file.is_none()) {
            Some((missing, _)) if !is_plain => Err(ConfigInvalid::TlsIncomplete { missing }),
            Some(_) | None => self.check_peer_tls(is_plain),
        }
    }

    fn check_peer_tls(&self, is_plain: bool) -> Result<(), ConfigInvalid> {
        let given = self.peer_tls().into_iter().find(|(_, file)| file.is_some());
        if let Some((key, _)) = given
            && is_plain
        {
            return Err(ConfigInvalid::PeerTlsWithoutTls { key });
        }
        let missing = match (&self.tls_peer_cert, &self.tls_peer_key) {
            (Some(_), None) => PEER_TLS.key,
            (None, Some(_)) => PEER_TLS.cert,
            (Some(_), Some(_)) | (None, None) => return Ok(()),
        };
        Err(ConfigInvalid::PeerTlsIncomplete { missing })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn peers_have_the_files_of_clients_unless_they_have_others() {
        let mut value =
            json!({"tls_cert": "node.pem", "tls_key": "node-key.pem", "tls_ca": "ca.pem"});
        let files = |value: &serde_json::Value| {
            let config: ServerConfig =
                serde_json::from_value(value.clone()).expect("a configuration");
            config.tls_files().expect("it has files")
        };
        assert_eq!(files(&value).peers, None);
        value["tls_peer_ca"] = json!("peer-ca.pem");
        let clients = files(&value).clients;
        let expected = TlsFiles {
            keys: TlsKeys {
                ca: "tls_peer_ca",
                ..CLIENT_TLS
            },
            ca: "peer-ca.pem".into(),
            ..clients.clone()
        };
        assert_eq!(files(&value).peers, Some(expected));
        value["tls_peer_cert"] = json!("peer.pem");
        value["tls_peer_key"] = json!("peer-key.pem");
        let expected = TlsFiles {
            keys: PEER_TLS,
            cert: "peer.pem".into(),
            key: "peer-key.pem".into(),
            ca: "peer-ca.pem".into(),
        };
        assert_eq!(files(&value).peers, Some(expected));
    }
}
