//! Addresses: the edges of each range, and version 4 within version 6.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use holdfast_domain::admin::webhook::is_global;
use proptest::prelude::{any, proptest};

#[track_caller]
fn check(text: &str, expected: bool) {
    assert_eq!(is_global(text.parse().unwrap()), expected, "{text}");
}

/// First and last address of each refused range, and its neighbours where they are global.
#[test]
fn ranges_of_version_4_end_where_the_registry_says() {
    for (below, first, last, above) in [
        ("", "0.0.0.0", "0.255.255.255", "1.0.0.0"),
        ("9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"),
        ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"),
        ("126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"),
        ("169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"),
        ("172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"),
        ("191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"),
        ("192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"),
        ("192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"),
        ("192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"),
        ("198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"),
        ("198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"),
        ("203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"),
        ("223.255.255.255", "224.0.0.0", "239.255.255.255", ""),
        ("", "240.0.0.0", "255.255.255.255", ""),
    ] {
        check(first, false);
        check(last, false);
        for outside in [below, above].into_iter().filter(|it| !it.is_empty()) {
            check(outside, true);
        }
    }
}

#[test]
fn of_version_6_only_global_unicast_is_taken() {
    for refused in [
        "::",
        "::1",
        "100::1",
        "1fff:ffff::1",
        "2001::1",
        "2001:1ff:ffff::1",
        "2001:2::1",
        "2001:20::1",
        "2001:db8::1",
        "3fff::1",
        "3fff:fff:ffff::1",
        "4000::1",
        "5f00::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fec0::1",
        "ff02::1",
    ] {
        check(refused, false);
    }
    for taken in [
        "2000::1",
        "2001:200::1",
        "2001:db7:ffff::1",
        "2001:db9::1",
        "2606:4700::1111",
        "2a00::1",
        "3ffe:ffff::1",
        "3fff:1000::1",
    ] {
        check(taken, true);
    }
}

#[test]
fn version_4_within_version_6_is_judged_by_itself() {
    for (refused, taken) in [
        ("::ffff:127.0.0.1", "::ffff:9.9.9.9"),
        ("::ffff:a9fe:a9fe", "::ffff:909:909"),
        ("64:ff9b::10.0.0.1", "64:ff9b::9.9.9.9"),
        ("2002:a00:1::1", "2002:909:909::1"),
        ("2002:7f00:1::", "2002:909:909::"),
        ("2606:4700::5efe:192.168.0.1", "2606:4700::5efe:9.9.9.9"),
        ("2606:4700::200:5efe:192.168.0.1", "2606:4700::200:5efe:9.9.9.9"),
        ("2002:909:909::5efe:10.0.0.1", "2002:909:909::5efe:9.9.9.9"),
        ("2002:a00:1::5efe:9.9.9.9", "2002:909:909:0:200:5efe:909:909"),
    ] {
        check(refused, false);
        check(taken, true);
    }
    for never in [
        "::9.9.9.9",
        "64:ff9b:1::9.9.9.9",
        "64:ff9b:0:1::9.9.9.9",
        "2001:0:909:909::f6f6:f6f6",
        "fe80::5efe:9.9.9.9",
        "fd00::200:5efe:9.9.9.9",
        "2001:db8::5efe:9.9.9.9",
    ] {
        check(never, false);
    }
}

/// Every way that leads from version 6 to this address.
fn ways_to(address: Ipv4Addr) -> [Ipv6Addr; 7] {
    let [a, b, c, d] = address.octets();
    let [high, low] = [[a, b], [c, d]].map(u16::from_be_bytes);
    [
        address.to_ipv6_mapped(),
        Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
        Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
        Ipv6Addr::new(0x2002, high, low, 1, 2, 3, 4, 5),
        Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0x5efe, high, low),
        Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0x200, 0x5efe, high, low),
    ]
}

proptest! {
    /// The library's own judgements, as far as they are stable, never take what is refused here.
    #[test]
    fn nothing_that_the_library_calls_special_is_taken(bits in any::<u32>(), wide in any::<u128>()) {
        let four = Ipv4Addr::from_bits(bits);
        let is_special = four.is_private() || four.is_loopback() || four.is_link_local()
            || four.is_multicast() || four.is_documentation() || four.is_broadcast()
            || four.is_unspecified();
        assert!(!(is_special && is_global(four.into())), "{four}");
        // A prefix of every kind: random bits alone would hardly ever begin with `fe80`.
        for prefix in [0_u128, 0x2001, 0x2001_0db8, 0xfc00, 0xfe80, 0xff00] {
            let shift = if prefix > 0xffff { 96 } else { 112 };
            let six = Ipv6Addr::from_bits(prefix << shift | wide >> (128 - shift));
            let is_special = six.is_unique_local() || six.is_unicast_link_local()
                || six.is_multicast() || six.is_loopback() || six.is_unspecified();
            assert!(!(is_special && is_global(six.into())), "{six}");
        }
    }

    #[test]
    fn no_way_through_version_6_leads_to_a_special_address(bits in any::<u32>(), range in 0_usize..6) {
        // Into a special range, whatever the bits are.
        let (base, mask) = [
            (0x0a00_0000, 0x00ff_ffff),
            (0x7f00_0000, 0x00ff_ffff),
            (0xa9fe_0000, 0x0000_ffff),
            (0xac10_0000, 0x000f_ffff),
            (0xc0a8_0000, 0x0000_ffff),
            (0xe000_0000, 0x1fff_ffff),
        ][range];
        let address = Ipv4Addr::from_bits(base | bits & mask);
        assert!(!is_global(address.into()), "{address}");
        for way in ways_to(address) {
            assert!(!is_global(IpAddr::V6(way)), "{way}");
        }
    }
}
