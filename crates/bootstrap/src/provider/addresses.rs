//! The addresses of this machine, as the kernel lists them. Read when a client of a provider is
//! made: what an interface gets later is known after the next reload.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Every address that reaches this machine; empty if the kernel does not list them.
pub(super) fn own() -> Vec<IpAddr> {
    let v4 = listed("/proc/net/fib_trie", of_trie);
    let v6 = listed("/proc/net/if_inet6", of_interfaces);
    v4.into_iter().chain(v6).collect()
}

fn listed(path: &str, read: fn(&str) -> Vec<IpAddr>) -> Vec<IpAddr> {
    match fs::read_to_string(path) {
        Ok(text) => read(&text),
        Err(error) => {
            // Not every system has it, and a kernel without IPv6 has one of the two.
            tracing::debug!(path, error = %error, "the addresses of this machine are not listed");
            Vec::new()
        }
    }
}

/// Lines of `|-- 192.0.2.1` are followed by what that is: `/32 host LOCAL` for one of this machine.
fn of_trie(text: &str) -> Vec<IpAddr> {
    let (mut last, mut own) = (None, Vec::new());
    for line in text.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line.starts_with("/32 host LOCAL")
            && let Some(address) = last.map(IpAddr::V4)
            && !own.contains(&address)
        {
            own.push(address);
        }
    }
    own
}

/// Each line begins with an address of 32 hexadecimal digits.
fn of_interfaces(text: &str) -> Vec<IpAddr> {
    let addresses = text.lines().filter_map(|line| {
        let digits = line.split_whitespace().next().filter(|digits| digits.len() == 32)?;
        u128::from_str_radix(digits, 16).ok()
    });
    addresses.map(|bits| IpAddr::V6(Ipv6Addr::from(bits))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_lists_are_read() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 10.0.0.0\n        /24 link UNICAST\n     \
                    |-- 10.0.0.7\n        /32 host LOCAL\n     |-- 10.0.0.255\n        \
                    /32 link BROADCAST\nLocal:\n     |-- 10.0.0.7\n        /32 host LOCAL\n";
        assert_eq!(of_trie(trie), [IpAddr::from([10, 0, 0, 7])]);
        let interfaces = "20010db8000000000000000000000001 02 40 00 80    eth0\nnonsense\n";
        assert_eq!(of_interfaces(interfaces), ["2001:db8::1".parse::<IpAddr>().unwrap()]);
    }

    #[test]
    fn this_machine_has_addresses() {
        assert!(own().iter().any(IpAddr::is_loopback));
    }
}
