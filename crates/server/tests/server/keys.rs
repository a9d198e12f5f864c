//! Keys and namespaces.

use crate::node::{Node, refused};
use flotilla_api::v1;
use tonic::{Code, Status};

fn setting(key: &str, value: &str) -> v1::SetKeyRequest {
    v1::SetKeyRequest {
        key: key.to_owned(),
        value: value.to_owned().into(),
        ..Default::default()
    }
}

async fn set(node: &Node, request: v1::SetKeyRequest) -> Result<u64, Status> {
    Ok(node.keys().set_key(request).await?.into_inner().version)
}

async fn get(node: &Node, key: &str) -> Result<v1::KeyValue, Status> {
    let request = v1::GetKeyRequest {
        key: key.to_owned(),
        ..Default::default()
    };
    Ok(node
        .keys()
        .get_key(request)
        .await?
        .into_inner()
        .item
        .unwrap())
}

async fn delete(node: &Node, key: &str) -> bool {
    let request = v1::DeleteKeyRequest {
        key: key.to_owned(),
        ..Default::default()
    };
    node.keys()
        .delete_key(request)
        .await
        .unwrap()
        .into_inner()
        .deleted
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_set_by_its_version_or_not_at_all() {
    let node = Node::start().await;
    let first = set(&node, setting("k", "1")).await.unwrap();
    let absent = v1::SetKeyRequest {
        if_absent: true,
        ..setting("k", "2")
    };
    assert_eq!(
        refused(set(&node, absent).await),
        (Code::AlreadyExists, "key_exists".to_owned())
    );
    let compared = |version| v1::SetKeyRequest {
        if_version: Some(version),
        request_id: vec![7; 16].into(),
        ..setting("k", "3")
    };
    let second = set(&node, compared(first)).await.unwrap();
    assert!(second > first);
    // A retry finds its own write, and gets the same response.
    assert_eq!(set(&node, compared(first)).await.unwrap(), second);
    let late = v1::SetKeyRequest {
        request_id: vec![8; 16].into(),
        ..compared(first)
    };
    assert_eq!(
        refused(set(&node, late).await),
        (Code::Aborted, "key_version_mismatch".to_owned())
    );
    let found = get(&node, "k").await.unwrap();
    assert_eq!((found.value.as_ref(), found.version), (&b"3"[..], second));
    assert!(delete(&node, "k").await);
    assert!(!delete(&node, "k").await);
    assert_eq!(
        refused(get(&node, "k").await),
        (Code::NotFound, "key_not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_pages_through_a_prefix_and_expired_keys_are_gone() {
    let node = Node::start().await;
    for number in 0..60 {
        let request = setting(&format!("a/{number:02}"), "x");
        set(&node, request).await.unwrap();
    }
    set(&node, setting("b", "x")).await.unwrap();
    let short = v1::SetKeyRequest {
        ttl_ms: Some(1),
        ..setting("a/gone", "x")
    };
    set(&node, short).await.unwrap();
    // Each entry has a later time than the previous one.
    set(&node, setting("b", "y")).await.unwrap();

    let mut keys = Vec::new();
    let mut page_token = String::new();
    loop {
        let request = v1::ScanKeysRequest {
            prefix: "a/".to_owned(),
            limit: 1_000,
            page_token,
            ..Default::default()
        };
        let page = node.keys().scan_keys(request).await.unwrap().into_inner();
        keys.extend(page.items.into_iter().map(|item| item.key));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    keys.retain(|key| key != "a/gone" || panic!("an expired key is listed"));
    let expected: Vec<String> = (0..60).map(|number| format!("a/{number:02}")).collect();
    assert_eq!(keys, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn values_and_keys_have_their_bounds() {
    let node = Node::start().await;
    let large = "x".repeat((64 << 10) + 1);
    assert_eq!(
        refused(set(&node, setting("k", &large)).await),
        (Code::InvalidArgument, "too_large".to_owned())
    );
    for key in ["", "a\nb", &"x".repeat(257)] {
        let refusal = refused(set(&node, setting(key, "1")).await);
        assert_eq!(refusal.0, Code::InvalidArgument, "{key:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_begins_with_its_first_write_and_is_deleted_when_empty() {
    let node = Node::start().await;
    let there = v1::SetKeyRequest {
        namespace: "shop".to_owned(),
        ..setting("k", "1")
    };
    set(&node, there).await.unwrap();
    let create = |name: &str| {
        let name = name.to_owned();
        let request = v1::CreateNamespaceRequest {
            name,
            ..Default::default()
        };
        let mut namespaces = node.namespaces();
        async move { namespaces.create_namespace(request).await }
    };
    assert!(!create("shop").await.unwrap().into_inner().created);
    assert!(create("audit").await.unwrap().into_inner().created);
    for name in ["", "1st", "shop-", "a b", &"x".repeat(64)] {
        assert_eq!(
            refused(create(name).await).0,
            Code::InvalidArgument,
            "{name}"
        );
    }
    let listed = v1::ListNamespacesRequest::default();
    let listed = node.namespaces().list_namespaces(listed).await.unwrap();
    let names: Vec<String> = listed
        .into_inner()
        .items
        .into_iter()
        .map(|namespace| namespace.name)
        .collect();
    assert!(names.is_sorted(), "{names:?}");
    assert!(names.contains(&"audit".to_owned()) && names.contains(&"shop".to_owned()));

    let delete = |name: &str| {
        let name = name.to_owned();
        let request = v1::DeleteNamespaceRequest {
            name,
            ..Default::default()
        };
        let mut namespaces = node.namespaces();
        async move { namespaces.delete_namespace(request).await }
    };
    assert!(delete("audit").await.unwrap().into_inner().deleted);
    assert!(!delete("audit").await.unwrap().into_inner().deleted);
    assert_eq!(
        refused(delete("shop").await),
        (Code::FailedPrecondition, "namespace_not_empty".to_owned())
    );
    assert_eq!(
        refused(delete("default").await),
        (Code::FailedPrecondition, "namespace_is_default".to_owned())
    );
}
