//! Whether nodes form a closed cluster, with a bootstrap token and a keyring that exist.

use super::Findings;
use super::tls::Node;
use flotilla_server::AccessMode;
use std::path::Path;

/// The files that exist where a node reads them.
#[derive(Clone, Copy)]
pub(super) struct SecretFiles<'f> {
    pub(super) bootstrap_token: Option<&'f Path>,
    pub(super) keyring: Option<&'f Path>,
}

/// Checks that the node forms a closed cluster, with the bootstrap token and the keyring in these files.
pub(super) fn check(node: Node<'_>, files: SecretFiles<'_>, findings: &mut Findings) {
    let Node { path, name, config } = node;
    let is_closed = config.access == AccessMode::Closed && !config.insecure;
    findings.expect(path, is_closed, format!("{name} to form a closed cluster"));
    for (what, configured, file) in [
        (
            "bootstrap token",
            &config.bootstrap_token_file,
            files.bootstrap_token,
        ),
        ("keyring", &config.keyring_file, files.keyring),
    ] {
        let is_configured = configured.is_some() && configured.as_deref() == file;
        findings.expect(
            path,
            is_configured,
            format!("{name} to read the {what} from {file:?}"),
        );
    }
}
