//! Addresses that another system may not be at, unless that is allowed: link-local ones, and those where clouds serve metadata.
//!
//! Whoever may define an endpoint says where the server connects to. From a machine in a cloud that would reach credentials of the machine
//! itself. A name is judged by the addresses that it leads to when a connection is made, and the connection goes to the address that was
//! judged: a name that leads elsewhere a moment later gains nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether link-local addresses, and those where clouds serve metadata, may be connected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkLocal {
    /// They may.
    Allowed,
    /// They may not.
    #[default]
    Refused,
}

/// Metadata at addresses that are not link-local: of Alibaba Cloud, Azure and Oracle Cloud;
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];
/// of AWS and Google Cloud.
const METADATA_V6: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)];
/// Before an address of IPv4 that is reached over NAT64 (RFC 6052).
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

impl LinkLocal {
    /// Whether this address may be connected to.
    ///
    /// # Errors
    /// Why not, as a phrase.
    pub fn check(self, address: IpAddr) -> Result<(), String> {
        if self == Self::Allowed || !is_special(address) {
            return Ok(());
        }
        Err(format!(
            "{address} is a link-local address, or one where a cloud serves metadata, and is not connected to; to allow \
             it, set link_local_targets of the server's configuration (--link-local-targets)"
        ))
    }
}

fn is_special(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local() || METADATA_V4.contains(&address),
        IpAddr::V6(address) => {
            let within = embedded(address).is_some_and(|inner| is_special(IpAddr::V4(inner)));
            within || address.is_unicast_link_local() || METADATA_V6.contains(&address)
        }
    }
}

/// The address of IPv4 that one of IPv6 stands for: mapped, compatible, or over NAT64.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let segments = address.segments();
    let is_nat64 = segments[..6] == NAT64;
    let low = Ipv4Addr::from_bits((u32::from(segments[6]) << 16) | u32::from(segments[7]));
    if is_nat64 { Some(low) } else { address.to_ipv4() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_local_addresses_and_metadata_of_clouds_are_refused() {
        let refused = [
            "169.254.169.254",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fe80::1",
            "febf::1",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "::169.254.169.254",
            "64:ff9b::169.254.169.254",
        ];
        for text in refused {
            let address: IpAddr = text.parse().expect("an address");
            let why = LinkLocal::Refused.check(address).expect_err(text);
            assert!(why.contains("--link-local-targets"), "{why}");
            assert_eq!(LinkLocal::Allowed.check(address), Ok(()));
        }
        let fine = [
            "127.0.0.1",
            "10.0.0.1",
            "192.168.1.1",
            "169.253.0.1",
            "::1",
            "fec0::1",
            "fd00::1",
            "2001:db8::1",
        ];
        for text in fine {
            assert_eq!(LinkLocal::Refused.check(text.parse().expect("an address")), Ok(()), "{text}");
        }
    }
}
