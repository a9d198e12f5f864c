//! Whether nodes form a closed cluster, with a bootstrap token that exists.

use super::Findings;
use super::tls::Node;
use flotilla_server::AccessMode;
use std::path::Path;

/// Checks that the node forms a closed cluster, with the bootstrap token in this file.
pub(super) fn check(node: Node<'_>, file: Option<&Path>, findings: &mut Findings) {
    let Node { path, name, config } = node;
    let is_closed = config.access == AccessMode::Closed && !config.insecure;
    findings.expect(path, is_closed, format!("{name} to form a closed cluster"));
    let configured = config.bootstrap_token_file.as_deref();
    let is_configured = configured.is_some() && configured == file;
    findings.expect(
        path,
        is_configured,
        format!("{name} to read the bootstrap token from {file:?}"),
    );
}
