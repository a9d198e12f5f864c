//! The files of `deploy`, and the related files at the root.

pub(super) use crate::reference::root;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// The files by path, relative to the root of the repository.
#[derive(Clone, Debug)]
pub(super) struct Files(BTreeMap<String, String>);

impl Files {
    /// The files of the working tree.
    pub(super) fn read() -> Self {
        let root = root();
        let mut files = BTreeMap::new();
        let mut open = vec![root.join("deploy"), root.join(".dockerignore")];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                let entries = fs::read_dir(&path).expect("a folder of the project");
                open.extend(entries.map(|entry| entry.expect("an entry of it").path()));
                continue;
            }
            let text = fs::read_to_string(&path).expect("a text file of the project");
            let path = path.strip_prefix(&root).expect("below the root");
            files.insert(path.display().to_string(), text);
        }
        Self(files)
    }

    /// The same files, with another text for one of them.
    pub(super) fn with(&self, path: &str, text: &str) -> Self {
        let mut files = self.clone();
        files.0.insert(path.to_owned(), text.to_owned());
        files
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// The text of a file; empty if it does not exist.
    pub(super) fn text(&self, path: &str) -> &str {
        self.0.get(path).map_or("", String::as_str)
    }

    /// The documents of a YAML file, with merges (`<<`) resolved.
    ///
    /// # Errors
    /// A sentence, if it is not YAML.
    pub(super) fn documents(&self, path: &str) -> Result<Vec<Value>, String> {
        let read = |document| {
            let mut value: serde_yaml::Value = serde::Deserialize::deserialize(document)?;
            // A merged map may contain merges itself.
            value.apply_merge()?;
            value.apply_merge()?;
            serde_yaml::from_value(value)
        };
        serde_yaml::Deserializer::from_str(self.text(path))
            .map(read)
            .collect::<Result<_, serde_yaml::Error>>()
            .map_err(|error| format!("expected YAML, but {error}"))
    }
}

/// The path of `name` relative to `folder`: `../..` goes up.
pub(super) fn beside(folder: &str, name: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}
