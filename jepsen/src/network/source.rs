//! Identifies the node at the other end of a connection on this machine.

use std::fs;
use std::path::Path;

/// The id of the node that connects from this loopback port, if it is one whose arguments name
/// the folder.
///
/// All nodes of one machine have the address 127.0.0.1, so the kernel's tables are read: the port
/// leads to a socket, the socket to a process, the process's arguments to the node.
pub(crate) fn node_at(port: u16, folder: &Path) -> Option<u64> {
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let inode = table.lines().find_map(|line| inode_at(line, port))?;
    let socket = format!("socket:[{inode}]");
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    processes
        .filter_map(|entry| Some((node_of(&entry.path(), folder)?, entry.path())))
        .find(|(_, process)| has_open(process, &socket))
        .map(|(node, _)| node)
}

/// The inode of a line of /proc/net/tcp, if its local address is loopback with this port.
fn inode_at(line: &str, port: u16) -> Option<&str> {
    let mut fields = line.split_whitespace();
    let local = fields.nth(1)?;
    let is_it = local == format!("0100007F:{port:04X}");
    let inode = fields.nth(7)?;
    (is_it && inode != "0").then_some(inode)
}

fn node_of(process: &Path, folder: &Path) -> Option<u64> {
    let line = fs::read(process.join("cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line);
    let mut words = line.split('\0');
    let folder = folder.to_str()?;
    if !line.contains(folder) {
        return None;
    }
    words.find(|word| *word == "--node-id")?;
    words.next()?.parse().ok()
}

fn has_open(process: &Path, socket: &str) -> bool {
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else {
        return false;
    };
    let mut targets = descriptors
        .filter_map(Result::ok)
        .filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| target.as_os_str() == socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_table_tells_the_socket_of_a_local_port() {
        let line = "   0: 0100007F:2711 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  \
                    1000        0 123456 1 0000000000000000 20 4 30 10 -1";
        assert_eq!(inode_at(line, 0x2711), Some("123456"));
        assert_eq!(inode_at(line, 0x9C40), None);
    }
}
