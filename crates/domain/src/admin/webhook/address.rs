//! Addresses that a webhook may be sent to: only global unicast.
//!
//! The ranges are those of IANA's registries of special-purpose addresses, without their few
//! exceptions that are reachable: no receiver of webhooks is there. An address of version 6 that
//! leads to one of version 4 is judged by that one:
//!
//! | form | prefix | judged by |
//! |---|---|---|
//! | mapped | `::ffff:0:0/96` | its last 32 bits alone |
//! | NAT64 | `64:ff9b::/96` | its last 32 bits alone |
//! | 6to4 | `2002::/16` | the 32 bits after the prefix |
//! | ISATAP | any, with `0:5efe` or `200:5efe` before its last 32 bits | its prefix and those bits |
//! | compatible, NAT64 of a site, Teredo | `::/96`, `64:ff9b:1::/48`, `2001::/32` | always refused |
//!
//! Limits: a site that translates under a prefix of its own (RFC 6052 allows any) looks like a network. There,
//! the translator has to refuse private addresses itself.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Special ranges of version 4, each with the number of bits that its addresses share.
const SPECIAL_V4: &[(Ipv4Addr, u32)] = &[
    (Ipv4Addr::UNSPECIFIED, 8),           // this network, RFC 791
    (Ipv4Addr::new(10, 0, 0, 0), 8),      // private, RFC 1918
    (Ipv4Addr::new(100, 64, 0, 0), 10),   // shared by carriers, RFC 6598
    (Ipv4Addr::new(127, 0, 0, 0), 8),     // loopback, RFC 1122
    (Ipv4Addr::new(169, 254, 0, 0), 16),  // link-local, metadata of clouds, RFC 3927
    (Ipv4Addr::new(172, 16, 0, 0), 12),   // private, RFC 1918
    (Ipv4Addr::new(192, 0, 0, 0), 24),    // protocol assignments, RFC 6890
    (Ipv4Addr::new(192, 0, 2, 0), 24),    // documentation, RFC 5737
    (Ipv4Addr::new(192, 88, 99, 0), 24),  // relays of 6to4, RFC 7526
    (Ipv4Addr::new(192, 168, 0, 0), 16),  // private, RFC 1918
    (Ipv4Addr::new(198, 18, 0, 0), 15),   // benchmarking, RFC 2544
    (Ipv4Addr::new(198, 51, 100, 0), 24), // documentation, RFC 5737
    (Ipv4Addr::new(203, 0, 113, 0), 24),  // documentation, RFC 5737
    (Ipv4Addr::new(224, 0, 0, 0), 4),     // multicast, RFC 1112
    (Ipv4Addr::new(240, 0, 0, 0), 4),     // reserved, and broadcast, RFC 1112 and 919
];

/// All of version 6 that is handed out as global unicast, RFC 4291. Loopback, link-local, unique
/// local and multicast addresses lie outside.
const UNICAST_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Special ranges of version 6 within [`UNICAST_V6`].
const SPECIAL_V6: &[(Ipv6Addr, u32)] = &[
    // Protocol assignments, RFC 2928: Teredo, benchmarking and ORCHID are in here.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32), // documentation, RFC 3849
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),     // documentation, RFC 9637
];

/// True for an address of global unicast: the only ones that a webhook may be sent to.
///
/// ```
/// use holdfast_domain::admin::webhook::is_global;
///
/// assert!(is_global("9.9.9.9".parse()?));
/// assert!(!is_global("169.254.169.254".parse()?));
/// assert!(!is_global("::ffff:169.254.169.254".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[must_use]
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => is_global_v6(address),
    }
}

fn is_global_v4(address: Ipv4Addr) -> bool {
    let is_in = |(range, bits): &(Ipv4Addr, u32)| {
        (address.to_bits() ^ range.to_bits()).leading_zeros() >= *bits
    };
    !SPECIAL_V4.iter().any(is_in)
}

fn is_global_v6(address: Ipv6Addr) -> bool {
    let is_in = |(range, bits): &(Ipv6Addr, u32)| {
        (address.to_bits() ^ range.to_bits()).leading_zeros() >= *bits
    };
    let is_unicast = is_in(&UNICAST_V6) && !SPECIAL_V6.iter().any(is_in);
    match address.octets() {
        // Mapped, and NAT64: spellings of an address of version 4, outside of global unicast.
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d]
        | [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => {
            is_global_v4(Ipv4Addr::new(a, b, c, d))
        }
        // 6to4 whose end is ISATAP: it leads to two of them.
        [0x20, 0x02, a, b, c, d, _, _, 0 | 2, 0, 0x5e, 0xfe, e, f, g, h] => {
            is_global_v4(Ipv4Addr::new(a, b, c, d)) && is_global_v4(Ipv4Addr::new(e, f, g, h))
        }
        [0x20, 0x02, a, b, c, d, ..] => is_global_v4(Ipv4Addr::new(a, b, c, d)),
        [.., 0 | 2, 0, 0x5e, 0xfe, a, b, c, d] => {
            is_unicast && is_global_v4(Ipv4Addr::new(a, b, c, d))
        }
        [..] => is_unicast,
    }
}
