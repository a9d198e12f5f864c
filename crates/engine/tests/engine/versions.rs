//! A second version of a record, of a command and of a definition's encoding (design rule 12, ADR 0025).
//!
//! The exercise is only in builds with debug assertions.
#![cfg(debug_assertions)]

use crate::samples;
use flotilla_engine::bytes::Bytes;
use flotilla_engine::codec::{self, fingerprint};
use flotilla_engine::definition::{Definition, DefinitionExtensions};
use flotilla_engine::rows::{NamespaceRecord, Namespaces, decode_record, encode_record};
use flotilla_engine::{
    Body, CommandEnvelope, CreateNamespace, ENGINE_VERSION, ENGINE_VERSION_EXERCISE, Entry, Mark,
    NodeId, Stamp,
};

const MARK: Option<Mark> = Some(Mark(7));

/// The bytes of a definition, as its fingerprint is made of them.
fn bytes(definition: &Definition) -> Vec<u8> {
    codec::encode(definition)
}

fn marked() -> Definition {
    Definition {
        extensions: DefinitionExtensions { mark: MARK },
        ..samples::definition()
    }
}

fn command(body: impl Into<Body>) -> CommandEnvelope {
    body.into().into_command(samples::namespace()).by_anyone()
}

fn create(definition: Definition) -> Body {
    Body::CreateDefinition(Box::new(samples::plain_revision(definition)))
}

#[test]
fn a_record_is_written_in_the_oldest_version_that_holds_it() {
    let plain = NamespaceRecord {
        created_at_ms: 1_000,
        mark: None,
    };
    let marked = NamespaceRecord {
        mark: MARK,
        ..plain
    };
    let encoded = encode_record::<Namespaces>(&plain);
    // Format, version 1, and what version 1 has: the time.
    assert_eq!(encoded, [1, 0, 251, 0xe8, 3]);
    assert_eq!(decode_record::<Namespaces>(&encoded).unwrap(), plain);
    let encoded = encode_record::<Namespaces>(&marked);
    assert_eq!(encoded, [1, 1, 251, 0xe8, 3, 1, 7]);
    assert_eq!(decode_record::<Namespaces>(&encoded).unwrap(), marked);
}

#[test]
fn a_command_is_written_in_the_oldest_version_that_holds_it() {
    let plain = command(CreateNamespace::default());
    let marked = command(CreateNamespace { mark: MARK });
    assert_eq!(plain.command.body.since(), ENGINE_VERSION);
    assert_eq!(marked.command.body.since(), ENGINE_VERSION_EXERCISE);
    assert_eq!(marked.encode().len(), plain.encode().len() + 2);
    for envelope in [plain, marked] {
        let entry = Entry {
            stamp: Stamp {
                now_ms: 1_000,
                seed: 1,
                node: NodeId(1),
            },
            offers: Vec::new(),
            commands: vec![envelope.clone()],
        };
        assert_eq!(Entry::decode(&entry.encode()).unwrap(), entry);
        let decoded = CommandEnvelope::decode(&envelope.encode());
        assert_eq!(decoded.unwrap(), envelope);
    }
}

#[test]
fn a_definition_has_the_same_bytes_until_it_uses_what_a_later_version_added() {
    let (plain, marked) = (samples::definition(), marked());
    // An empty list of extensions ends it, however many extensions this build knows.
    assert_eq!(bytes(&plain).last(), Some(&0));
    assert_ne!(fingerprint(&bytes(&plain)), fingerprint(&bytes(&marked)));
    let decoded: Definition = codec::decode(&bytes(&marked)).unwrap();
    assert_eq!(decoded, marked);
    assert_eq!(create(plain).since(), ENGINE_VERSION);
    assert_eq!(create(marked).since(), ENGINE_VERSION_EXERCISE);
}

#[test]
fn extensions_of_a_newer_version_and_in_another_order_are_refused() {
    let encode = |fields: &[(u16, Bytes)]| codec::encode(&fields);
    let decode = |bytes: &[u8]| codec::decode::<DefinitionExtensions>(bytes);
    let mark = || (0xFFFF, Bytes::from(codec::encode(&7_u64)));
    let known = decode(&encode(&[mark()])).unwrap();
    assert_eq!(known, DefinitionExtensions { mark: MARK });
    let newer = decode(&encode(&[(9, Bytes::from("?"))])).unwrap_err();
    assert!(newer.to_string().contains("found number 9"), "{newer}");
    let twice = decode(&encode(&[mark(), mark()])).unwrap_err();
    assert!(twice.to_string().contains("ascending order"), "{twice}");
}
