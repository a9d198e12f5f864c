//! The engine versions that members know, and the agreed one.

use flotilla_client::{Client, ClientOptions, v1};
use flotilla_tests::{DevNode, TIMEOUT, wait_until};
use tokio::runtime;

/// The versions that members report.
#[derive(Clone, Debug)]
pub(crate) struct Versions {
    /// The agreed engine version.
    pub(crate) agreed: u32,
    /// The newest version that each member knows; 0 for one that does not answer.
    known: Vec<u32>,
    /// The version of the binary of the first member in the list.
    pub(crate) binary: String,
}

impl Versions {
    /// Whether all members know the same version, and have agreed on it.
    fn is_settled(&self) -> bool {
        self.known.iter().all(|known| *known == self.agreed)
    }
}

/// Waits until the nodes at these endpoints report the agreed version.
///
/// # Panics
/// When they do not.
pub(crate) fn await_answer(endpoints: &[String]) -> Versions {
    wait_until("the members' versions", TIMEOUT, || ask(endpoints))
}

/// Waits until the nodes at these endpoints have all agreed on the newest version that they know.
///
/// # Panics
/// When they do not.
pub(crate) fn await_settled(endpoints: &[String]) -> Versions {
    wait_until("the newest version to be agreed on", TIMEOUT, || {
        let versions = ask(endpoints)?;
        match versions.is_settled() {
            true => Ok(versions),
            false => Err(format!("the members report {versions:?}")),
        }
    })
}

/// The newest engine version that the binary under test knows.
///
/// # Panics
/// When a node with it does not start.
pub(super) fn of_this_build() -> u32 {
    let node = DevNode::start();
    let versions = await_settled(&[node.endpoint()]);
    versions.agreed
}

fn ask(endpoints: &[String]) -> Result<Versions, String> {
    let options = ClientOptions {
        endpoints: endpoints.to_vec(),
        ..ClientOptions::default()
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let status = runtime.block_on(async {
        let client = Client::connect(options)?;
        client.get_status(v1::GetStatusRequest {}).await
    });
    let status = status.map_err(|error| error.to_string())?;
    let binary = status.nodes.first().map(|node| node.version.clone());
    Ok(Versions {
        agreed: status.engine_version,
        known: status
            .nodes
            .iter()
            .map(|node| node.engine_version)
            .collect(),
        binary: binary.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_agreed_on_when_all_members_know_it_and_none_is_away() {
        let settled = |agreed, known: &[u32]| {
            let versions = Versions {
                agreed,
                known: known.to_vec(),
                binary: String::new(),
            };
            versions.is_settled()
        };
        assert!(settled(3, &[3, 3, 3]));
        assert!(!settled(2, &[3, 3, 3]));
        assert!(!settled(2, &[3, 3, 2]));
        assert!(!settled(3, &[3, 3, 0]));
    }
}
