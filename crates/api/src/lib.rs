//! What clients and nodes of Flotilla have in common: the generated gRPC messages and services, which the files in `proto/`
//! document, their JSON, and the text of API tokens.

pub mod descriptors;
pub mod json;
pub mod token;

/// The package `flotilla.v1`.
pub mod v1 {
    #![allow(
        clippy::all,
        clippy::allow_attributes_without_reason,
        clippy::too_many_lines,
        reason = "generated code"
    )]

    tonic::include_proto!("flotilla.v1");
}

/// A request that may name the namespace in which it acts.
pub trait NamespacedRequest {
    /// The namespace that it names, empty for `default`; `None` if it names none.
    fn named_namespace(&self) -> Option<&str>;
}

include!(concat!(env!("OUT_DIR"), "/named_namespaces.rs"));

impl<M> NamespacedRequest for tonic::Streaming<M> {
    /// Its messages name the namespace.
    fn named_namespace(&self) -> Option<&str> {
        None
    }
}

/// A response, or a message in one, that may have fields with the option `payload` (X17).
pub trait Redact {
    /// Empties these fields, and sets `redacted` in the messages that have it.
    fn redact(&mut self);
}

include!(concat!(env!("OUT_DIR"), "/redactions.rs"));

/// The encoded file descriptor set of all protocol files, for server reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// What each method needs of its caller, by the path of its calls: the permission of its option `flotilla.rest.route`.
pub const PERMISSIONS: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/permissions.rs"));

/// The paths of the calls that read, and whose response is one message (X24).
pub const READS: &[&str] = &include!(concat!(env!("OUT_DIR"), "/reads.rs"));
