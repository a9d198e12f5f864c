//! Keys, in two namespaces.

use super::{Legacy, Site, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const NAMESPACES: [&str; 2] = ["default", "release"];
const KEYS: u64 = 5;

/// Keys, in two namespaces.
pub(super) struct Keys;

#[derive(Serialize, Deserialize)]
struct Key {
    namespace: String,
    key: String,
    value: String,
    version: u64,
}

impl Legacy for Keys {
    fn name(&self) -> &'static str {
        "keys"
    }

    fn leave(&self, site: &Site) -> Value {
        let mut keys = Vec::new();
        for namespace in NAMESPACES {
            let flo = site.flo.within(namespace);
            for number in 0..KEYS {
                let (key, value) = (format!("release/{number}"), format!("{namespace}-{number}"));
                drop(flo.text(&["kv", "set", &key, "before"]));
                let set = flo.json(&["kv", "set", &key, &value]);
                keys.push(Key {
                    namespace: namespace.to_owned(),
                    key,
                    value,
                    version: set["version"].as_u64().expect("a key has a version"),
                });
            }
        }
        json!(keys)
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        for key in read::<Vec<Key>>(acknowledged) {
            let flo = site.flo.within(&key.namespace);
            let found = flo.json(&["kv", "get", &key.key]);
            assert_eq!(found["value"], key.value.as_str(), "{found}");
            assert_eq!(found["version"], key.version, "{found}");
            let version = key.version.to_string();
            let set = ["kv", "set", &key.key, "after", "--if-version", &version];
            drop(flo.text(&set));
            assert_eq!(flo.text(&["kv", "get", &key.key]), "after");
        }
    }
}
