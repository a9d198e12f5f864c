//! The machine on which the figures were measured.

use std::fs;
use std::thread;

use serde_json::{Value, json};

/// The machine, and the measured binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    cores: usize,
    processor: String,
    memory_mib: Option<u64>,
    kernel: String,
    versions: Vec<String>,
}

impl Machine {
    /// Reads the properties of this machine; unknown ones are left out.
    pub(crate) fn look(versions: Vec<String>) -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            processor: field(&read("/proc/cpuinfo"), "model name"),
            memory_mib: kib(&field(&read("/proc/meminfo"), "MemTotal")).map(|kib| kib / 1024),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            versions,
        }
    }

    /// As text.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self {
            cores,
            processor,
            kernel,
            ..
        } = self;
        let memory = self.memory_mib.unwrap_or_default();
        let machine = format!("{cores} cores ({processor}), {memory} MiB, Linux {kernel}");
        let versions = self.versions.iter().cloned();
        std::iter::once(machine).chain(versions).collect()
    }

    /// As JSON.
    pub(crate) fn json(&self) -> Value {
        json!({
            "cores": self.cores,
            "processor": self.processor,
            "memory_mib": self.memory_mib,
            "kernel": self.kernel,
            "versions": self.versions,
        })
    }
}

/// The value of a line `name : value`; empty without one.
fn field(text: &str, name: &str) -> String {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let found = pairs.find(|(known, _)| known.trim() == name);
    found.map_or_else(String::new, |(_, value)| value.trim().to_owned())
}

/// The number in `123 kB`.
fn kib(value: &str) -> Option<u64> {
    value.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "model\t\t: 85\nmodel name\t: Sail 9000\nmodel name\t: Oar 1\n";
        assert_eq!(field(text, "model name"), "Sail 9000");
        assert_eq!(field(text, "flags"), "");
        assert_eq!(kib("24576 kB"), Some(24_576));
        assert_eq!(kib(""), None);
    }

    #[test]
    fn the_machine_is_shown_with_the_versions() {
        let machine = Machine::look(vec!["flo 1".to_owned(), "etcd 3".to_owned()]);
        assert_eq!(machine.lines()[1..], ["flo 1", "etcd 3"]);
        assert_eq!(machine.json()["versions"][1], "etcd 3");
    }
}
