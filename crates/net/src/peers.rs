//! Client addresses: the address that a request counts by, and the connections that each has.
//!
//! Behind a proxy that the operator has listed, a client's address is the last one of `X-Forwarded-For`: the
//! one that this proxy has added. What stands before it is the client's own word. Addresses of version 6 are
//! taken by their first 64 bits, of which one client has all.
//!
//! A proxy that is not listed is a client like any other, and all that come through it count as one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use http::header::HeaderName;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// A range of addresses: those whose first `bits` are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

/// Error of a text that is neither an address nor a network.
#[derive(Debug, thiserror::Error)]
#[error("no address and no network: write 10.0.0.5, 10.0.0.0/8 or fd00::/8")]
pub struct BadNetwork;

impl Network {
    /// Networks of one machine.
    pub const LOOPBACK: [Self; 2] = [
        Self { address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), bits: 8 },
        Self { address: IpAddr::V6(Ipv6Addr::LOCALHOST), bits: 128 },
    ];

    /// Reads an address, or one with the number of its bits that count.
    ///
    /// # Errors
    ///
    /// If it is neither.
    pub fn parse(text: &str) -> Result<Self, BadNetwork> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok().ok_or(BadNetwork)?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= most).ok_or(BadNetwork)?,
            None => most,
        };
        Ok(Self { address, bits })
    }

    fn contains(self, address: IpAddr) -> bool {
        let (one, other, width) = match (self.address, address.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => {
                (u128::from(u32::from(one)), u128::from(u32::from(other)), 32)
            }
            (IpAddr::V6(one), IpAddr::V6(other)) => (u128::from(one), u128::from(other), 128),
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
        };
        (one ^ other).checked_shr(width - self.bits).unwrap_or(0) == 0
    }
}

/// True for an address of a trusted proxy, whose `X-Forwarded-For` is believed.
#[must_use]
pub(crate) fn is_trusted(trusted: &[Network], address: IpAddr) -> bool {
    trusted.iter().any(|network| network.contains(address))
}

/// The client of a request that came from this address.
#[must_use]
pub fn client(trusted: &[Network], address: IpAddr, headers: &HeaderMap) -> IpAddr {
    let is_proxy = !trusted.is_empty() && is_trusted(trusted, address);
    let named = if is_proxy { forwarded(headers) } else { None };
    named.unwrap_or(address).to_canonical()
}

/// The client of a request that came through a row of trusted proxies: the last address in
/// `X-Forwarded-For` that is none of theirs.
#[must_use]
pub fn client_beyond(trusted: &[Network], address: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut client = address.to_canonical();
    let values = headers.get_all(FORWARDED_FOR).iter().rev();
    let texts = values.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    for text in texts {
        if !is_trusted(trusted, client) {
            break;
        }
        // What a trusted proxy has added and nobody can read hides all that stands before it.
        let Some(told) = forwarded_address(text) else { break };
        client = told.to_canonical();
    }
    client
}

fn forwarded(headers: &HeaderMap) -> Option<IpAddr> {
    // The last field and the last address in it: a proxy appends its own, either as a further
    // address or as a further header. Anything earlier may be forged.
    let last = headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
    forwarded_address(last.rsplit(',').next()?)
}

/// Parses one address of the header.
fn forwarded_address(text: &str) -> Option<IpAddr> {
    let last = text.trim();
    let bare = last.strip_prefix('[').and_then(|rest| rest.split(']').next());
    // Some proxies add the port.
    bare.unwrap_or(last)
        .parse()
        .ok()
        .or_else(|| last.parse().ok().map(|it: std::net::SocketAddr| it.ip()))
}

/// Key that an address is counted by: itself, or the /64 of an address of version 6.
#[must_use]
pub fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from(u128::from(address) & (u128::MAX << 64)).into(),
    }
}

/// Counter of connections by address. An address without connections has no entry. One lock: a count is compared and
/// raised in one step.
#[derive(Debug, Clone, Default)]
pub(crate) struct AddressCounts(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// A connection of an address, until it is dropped.
#[derive(Debug)]
pub(crate) struct AddressPermit {
    addresses: AddressCounts,
    address: IpAddr,
}

impl AddressCounts {
    /// Counts one more of an address that has fewer than this.
    #[must_use]
    pub(crate) fn take(&self, address: IpAddr, most: usize) -> Option<AddressPermit> {
        let address = group(address);
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= most {
            // The entry stays, and is not empty: with `most` at least 1 it has a connection.
            return None;
        }
        *count = count.saturating_add(1);
        Some(AddressPermit { addresses: self.clone(), address })
    }
}

impl Drop for AddressPermit {
    fn drop(&mut self) {
        let mut counts = self.addresses.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut count) = counts.entry(self.address) {
            *count.get_mut() = count.get().saturating_sub(1);
            // Or the map would grow with every address that ever connected.
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_network_is_its_first_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.5", "10.0.0.5", "10.0.0.6"),
            ("10.0.0.5", "::ffff:10.0.0.5", "::ffff:10.0.0.6"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("0.0.0.0/0", "192.0.2.1", "::1"),
        ] {
            let network = Network::parse(network).unwrap();
            assert!(network.contains(ip(inside)), "{network:?}");
            assert!(!network.contains(ip(outside)), "{network:?}");
        }
        for bad in ["", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "proxy", "fd00::/129"] {
            assert!(Network::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_a_listed_proxy_says_who_its_client_is() {
        let trusted = [Network::parse("10.0.0.0/8").unwrap()];
        let from = |address: &str, told: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in told {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
            }
            client(&trusted, ip(address), &headers).to_string()
        };
        assert_eq!(from("10.0.0.1", &["1.1.1.1, 192.0.2.7"]), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &["1.1.1.1", "192.0.2.7:5000"]), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &["[2001:db8::1]:80"]), "2001:db8::1");
        assert_eq!(from("10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(from("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(from("192.0.2.9", &["1.1.1.1"]), "192.0.2.9");
    }

    #[test]
    fn behind_a_row_of_proxies_the_client_is_the_last_that_is_none_of_them() {
        let trusted = [Network::parse("10.0.0.0/8").unwrap()];
        let from = |address: &str, told: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in told {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
            }
            client_beyond(&trusted, ip(address), &headers).to_string()
        };
        assert_eq!(from("10.0.0.1", &["1.1.1.1, 192.0.2.7, 10.0.0.2", "10.0.0.3"]), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &["1.1.1.1, 192.0.2.7"]), "192.0.2.7");
        assert_eq!(from("10.0.0.1", &["192.0.2.7, unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(from("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(from("192.0.2.9", &["1.1.1.1, 10.0.0.2"]), "192.0.2.9");
    }

    #[test]
    fn an_address_has_as_many_connections_as_it_may() {
        let addresses = AddressCounts::default();
        let first = addresses.take(ip("2001:db8::1"), 1).unwrap();
        assert!(addresses.take(ip("2001:db8::2"), 1).is_none(), "of the same client");
        let _other = addresses.take(ip("2001:db8:0:1::1"), 1).unwrap();
        drop(first);
        let _again = addresses.take(ip("2001:db8::2"), 1).unwrap();
        assert_eq!(addresses.0.lock().unwrap().len(), 2);
    }
}
