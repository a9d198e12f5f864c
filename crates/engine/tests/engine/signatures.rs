//! The signature of a definition follows its steps and nothing else (W88).

use crate::script::define;
use sha2::{Digest, Sha256};

const TEXT: &str = "define order 1 on-error=rescue
  start: run @charge -> success=fan
  fan: parallel -> success=flo.Completed
  branch mail of fan single
  mail: run @workflow/mail
  branch stock of fan list
  reserve: set set=n=1
  rescue: block
  branch rescue-block of rescue single
  page: run @page";

#[test]
fn a_signature_is_the_digest_of_the_published_form() {
    let form = r#"{"block":[["start","run","@actions/charge",[]],["fan","parallel",null,[[["mail","run","@workflow/mail",[]]],[["reserve","set",null,[]]]]]],"name":"order","onCancel":null,"onError":[["page","run","@actions/page",[]]]}"#;
    let digest = Sha256::digest(form);
    let digits: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(define(TEXT).signature(), digits);
}

#[test]
fn a_signature_changes_with_the_steps_alone() {
    let signature = |old: &str, new: &str| {
        assert!(TEXT.contains(old));
        define(&TEXT.replace(old, new)).signature()
    };
    let same = define(TEXT).signature();
    assert_eq!(signature("order 1", "order 2"), same);
    assert_eq!(signature("success=fan", "success=flo.Completed"), same);
    assert_eq!(signature("set=n=1", "set=n=2"), same);
    assert_ne!(signature("@charge", "@refund"), same);
    assert_ne!(signature("mail: run", "letter: run"), same);
    assert_ne!(signature("@page", "@call"), same);
    assert_ne!(signature("define order", "define other"), same);
    let hash = |old: &str, new: &str| define(&TEXT.replace(old, new)).content_hash();
    assert_ne!(hash("set=n=1", "set=n=2"), hash("", ""));
    assert_eq!(hash("", "").len(), 64);
}
