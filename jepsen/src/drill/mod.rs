//! Operators' procedures on a cluster that serves.
//!
//! A drill runs once, under the same clients and with the same checkers as a fault. But a drill is not a fault:
//! a call that fails in spite of the client's retries counts against it.

mod backup;
mod certificates;
mod disk;
mod members;
mod table;
mod upgrade;

pub use table::table;

use crate::nemesis::{self, Nemesis};

/// Every drill.
#[must_use]
pub fn all() -> Vec<Box<dyn Nemesis>> {
    vec![
        Box::new(members::GrowAndShrink),
        Box::new(members::ReplaceWiped),
        Box::new(members::TransferLeader),
        nemesis::rolling_restart(),
        Box::new(backup::BackUpAndRestore),
        Box::new(disk::FillAndEmpty),
        Box::new(certificates::RotateCertificates),
        Box::new(upgrade::Upgrade),
    ]
}

/// The drill of this name.
#[must_use]
pub fn named(name: &str) -> Option<Box<dyn Nemesis>> {
    all().into_iter().find(|drill| drill.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_tells_of_each_drill() {
        let readme = include_str!("../../README.md");
        for drill in all() {
            let row = format!("| `{}` |", drill.name());
            assert!(readme.contains(&row), "{row}");
        }
    }
}
