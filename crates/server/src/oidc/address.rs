//! From which addresses keys are fetched (H36).
//!
//! An issuer, or a party that answers in its place, chooses the URL of its keys and what a name resolves to. So a node judges each address
//! before it connects, and connects to that address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Which kinds of addresses are permitted besides public ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Permitted {
    /// Those of private networks.
    pub(super) private: bool,
    /// Those of this machine.
    pub(super) loopback: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Public,
    Private,
    Loopback,
    /// No issuer is there: link-local, where clouds serve the credentials of machines; multicast, reserved, documentation,
    /// and forms that embed another address.
    Never,
}

impl Permitted {
    /// Whether keys may be fetched from the address.
    pub(super) fn permits(self, address: IpAddr) -> bool {
        let reach = match address {
            IpAddr::V4(address) => reach_v4(address),
            IpAddr::V6(address) => reach_v6(address),
        };
        match reach {
            Reach::Public => true,
            Reach::Private => self.private,
            Reach::Loopback => self.loopback,
            Reach::Never => false,
        }
    }
}

fn reach_v4(address: Ipv4Addr) -> Reach {
    match address.octets() {
        [127, ..] => Reach::Loopback,
        [10, ..] | [192, 168, ..] => Reach::Private,
        [172, second, ..] if second & 0xF0 == 16 => Reach::Private,
        [100, second, ..] if second & 0xC0 == 64 => Reach::Private,
        [0 | 224.., ..]
        | [169, 254, ..]
        | [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => Reach::Never,
        _ => Reach::Public,
    }
}

fn reach_v6(address: Ipv6Addr) -> Reach {
    if address == Ipv6Addr::LOCALHOST {
        return Reach::Loopback;
    }
    match address.segments() {
        [first, ..] if first & 0xFE00 == 0xFC00 => Reach::Private,
        // Protocol assignments such as Teredo, documentation, 6to4.
        [0x2001, second, ..] if second < 0x200 || second == 0xDB8 => Reach::Never,
        [0x2002, ..] => Reach::Never,
        [0x3FFF, second, ..] if second < 0x1000 => Reach::Never,
        [first, ..] if first & 0xE000 == 0x2000 => Reach::Public,
        _ => Reach::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(permitted: Permitted, address: &str) -> bool {
        permitted.permits(address.parse().expect("an address"))
    }

    #[test]
    fn each_kind_of_address_is_permitted_or_not() {
        let public = Permitted::default();
        let private = Permitted {
            private: true,
            loopback: false,
        };
        let loopback = Permitted {
            private: false,
            loopback: true,
        };
        for address in [
            "1.1.1.1",
            "172.15.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "2606:4700::1",
        ] {
            assert!(permits(public, address), "{address}");
        }
        for address in [
            "10.0.0.1",
            "172.16.0.1",
            "172.31.9.9",
            "192.168.1.1",
            "100.64.0.1",
            "fd00::1",
        ] {
            assert!(
                !permits(public, address) && !permits(loopback, address),
                "{address}"
            );
            assert!(permits(private, address), "{address}");
        }
        for address in ["127.0.0.1", "127.9.9.9", "::1"] {
            assert!(
                !permits(public, address) && !permits(private, address),
                "{address}"
            );
            assert!(permits(loopback, address), "{address}");
        }
    }

    #[test]
    fn addresses_of_no_single_host_or_of_a_transition_are_never_permitted() {
        let all = Permitted {
            private: true,
            loopback: true,
        };
        for address in [
            "0.0.0.0",
            "169.254.169.254",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "198.18.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "::ffff:1.1.1.1",
            "::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::1",
            "3fff::1",
            "100::1",
        ] {
            assert!(!permits(all, address), "{address}");
        }
    }
}
