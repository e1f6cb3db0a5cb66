//! Guard against server-side request forgery: the machine that the URL of a picture names, as those
//! who fetch it may read it.
//!
//! A host can be spelled in many ways: with escapes, in capitals, in full-width characters, as one number, in
//! octal or hexadecimal, as IPv4 inside IPv6. A spelling that is not understood here would get past the check
//! and be understood by the fetcher. If a URL can be read in two ways, both count.
//!
//! Names are not resolved here. Only the program that looks a name up knows its address, which may change
//! between this check and the fetch.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Address at which clouds give machines their own credentials, over IPv6.
const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
/// Names that mean the machine that looks them up.
const LOCAL_NAMES: [&str; 4] =
    ["localhost", "localhost.localdomain", "ip6-localhost", "ip6-loopback"];

/// True for a URL that names, literally, the machine that fetches it or one on its own link: no
/// picture of a caller's is there.
#[must_use]
pub(super) fn names_inside(url: &str) -> bool {
    host(url).is_some_and(|host| {
        let is_local = LOCAL_NAMES.contains(&host.as_str()) || host.ends_with(".localhost");
        is_local || addresses_of(&host).into_iter().any(is_inside)
    })
}

/// The addresses that the host of a URL may be read as; empty if it is a name.
#[must_use]
pub fn literal_addresses(url: &str) -> Vec<IpAddr> {
    host(url).map(|host| addresses_of(&host)).unwrap_or_default()
}

fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [first, ..] = v4.octets();
            // All of 0.0.0.0/8 means this machine to some systems.
            first == 0 || v4.is_loopback() || v4.is_link_local()
        }
        IpAddr::V6(v6) => {
            v6.is_unspecified() || v6.is_loopback() || v6.is_unicast_link_local() || v6 == METADATA
        }
    }
}

/// The host of an `http:` or `https:` URL: in lower case and plain ASCII if it has a plain form, without user,
/// port, escapes and dots at its end; an address of IPv6 without its brackets.
fn host(url: &str) -> Option<String> {
    // Most URLs are whole pictures, of megabytes: no copy of those.
    if url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:")) {
        return None;
    }
    // Parsers of the WHATWG's standard drop these anywhere, and read on.
    let is_ignored = |c: char| matches!(c, '\t' | '\n' | '\r');
    let plain: String = url.chars().filter(|c| !is_ignored(*c)).map(plain).collect();
    // And these at the beginning.
    let plain = plain.trim_start_matches(|c: char| c.is_ascii_control() || c == ' ');
    let (scheme, rest) = plain.split_once(':')?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let is_slash = |c: char| matches!(c, '/' | '\\');
    // Any number of slashes, and backslashes too: `http:\\host` is a URL with a host to them.
    let authority = rest.trim_start_matches(is_slash);
    let end = authority.find(|c: char| is_slash(c) || matches!(c, '?' | '#'));
    let authority = authority.get(..end.unwrap_or(authority.len()))?;
    // The last `@` ends the user: what stands before it may look like a host.
    let host = authority.rsplit_once('@').map_or(authority, |(_user, host)| host);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(address, _port)| address),
        None => host.split_once(':').map_or(host, |(host, _port)| host),
    };
    // Only now: an escaped slash or `@` is a character of the host and ends nothing.
    let host = unescaped(host);
    Some(host.trim_end_matches('.').to_owned())
}

/// A character as hosts are compared: fullwidth forms, digits in other dress and the full stops of
/// other scripts are the plain ones.
fn plain(c: char) -> char {
    let from = |first: u32, to: char| {
        let offset = u32::from(c).checked_sub(first)?;
        char::from_u32(u32::from(to).checked_add(offset)?)
    };
    let found = match c {
        '\u{ff01}'..='\u{ff5e}' => from(0xff01, '!'),
        // Full stops of Chinese and Japanese, which resolvers of such names take for dots.
        '\u{3002}' | '\u{ff61}' => Some('.'),
        '\u{2460}'..='\u{2468}' => from(0x2460, '1'),
        '\u{24ea}' | '\u{2070}' => Some('0'),
        '\u{24d0}'..='\u{24e9}' => from(0x24d0, 'a'),
        '\u{24b6}'..='\u{24cf}' => from(0x24b6, 'a'),
        '\u{00b9}' => Some('1'),
        '\u{00b2}' | '\u{00b3}' => from(0xb2, '2'),
        '\u{2074}'..='\u{2079}' => from(0x2074, '4'),
        '\u{2080}'..='\u{2089}' => from(0x2080, '0'),
        '\u{1d7ce}'..='\u{1d7ff}' => {
            char::from_digit(u32::from(c).saturating_sub(0x1d7ce) % 10, 10)
        }
        _ => None,
    };
    found.unwrap_or(c).to_ascii_lowercase()
}

/// Without `%41` for `a`.
fn unescaped(host: &str) -> String {
    let mut bytes = Vec::with_capacity(host.len());
    let mut rest = host.as_bytes();
    while let [first, after @ ..] = rest {
        let escaped = (*first == b'%').then(|| after.split_first_chunk::<2>()).flatten();
        let byte = escaped.and_then(|(digits, after)| {
            let digits = str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let (byte, after) = byte.unwrap_or((*first, after));
        bytes.push(byte.to_ascii_lowercase());
        rest = after;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An address of IPv6 with the one of IPv4 that it stands for, or every address that numbers
/// between dots may be read as.
fn addresses_of(host: &str) -> Vec<IpAddr> {
    // A zone names an interface: the address is the same without it.
    let without_zone = host.split_once('%').map_or(host, |(address, _zone)| address);
    if let Ok(v6) = without_zone.parse::<Ipv6Addr>() {
        return std::iter::once(v6.into()).chain(within(v6).map(IpAddr::V4)).collect();
    }
    // `0127.0.0.1` is 87.0.0.1 to some and this machine to others: either reading is enough to refuse.
    let readings = [Octal::Read, Octal::Ignored].into_iter().filter_map(|octal| v4(host, octal));
    readings.map(IpAddr::V4).collect()
}

/// The address of IPv4 in one of IPv6: mapped, compatible, translated (`64:ff9b::/96`) or behind
/// 6to4.
fn within(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(of(high, low)),
        _ => None,
    }
}

/// Reading of a number that starts with a zero: some fetchers take it for octal, others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Octal {
    Read,
    Ignored,
}

/// An IPv4 address of one to four numbers, the last of which fills the bytes that are left.
fn v4(host: &str, octal: Octal) -> Option<Ipv4Addr> {
    let parts: Vec<&str> = host.split('.').collect();
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let mut address: u32 = 0;
    for part in first {
        let byte = u8::try_from(number(part, octal)?).ok()?;
        address = (address << 8) | u32::from(byte);
    }
    let bytes_left = u32::try_from(4_usize.checked_sub(first.len())?).ok()?;
    let last = number(last, octal)?;
    let room = 1_u64.checked_shl(bytes_left.checked_mul(8)?)?;
    let high = u64::from(address).checked_mul(room)?;
    (last < room).then(|| u32::try_from(high | last).ok().map(Ipv4Addr::from)).flatten()
}

fn number(part: &str, octal: Octal) -> Option<u64> {
    if let Some(digits) = part.strip_prefix("0x") {
        // `0x` alone is zero to parsers of that standard.
        return if digits.is_empty() { Some(0) } else { u64::from_str_radix(digits, 16).ok() };
    }
    if !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let is_octal = octal == Octal::Read && part.len() > 1 && part.starts_with('0');
    u64::from_str_radix(part, if is_octal { 8 } else { 10 }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inside_is_known_in_every_spelling() {
        for host in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "ip6-localhost",
            "127.0.0.1",
            "127.0.0.1.",
            "127.1",
            "127.255.255.254",
            "2130706433",
            "0x7f000001",
            "0X7F.0.0.0x1",
            "0177.0.0.1",
            "0127.0.0.1",
            "017700000001",
            "0",
            "0.0.0.0",
            "169.254.169.254",
            "169.254.43518",
            "0xa9fea9fe",
            "2852039166",
            "%31%36%39.254.169.254",
            "１２７.0.0.1",
            "127。0。0。1",
            "①②⑦.0.0.1",
            "ⓛocalhost",
            "user:pass@127.0.0.1",
            "example.com@169.254.169.254",
            "[::1]",
            "[::]",
            "[0:0:0:0:0:0:0:1]",
            "[fe80::1]",
            "[fe80::1%25eth0]",
            "[febf::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a9fe:a9fe]",
            "[::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:7f00:1::]",
            "[fd00:ec2::254]",
        ] {
            for url in [
                format!("http://{host}/a.png"),
                format!("HTTPS://{host}:8000?x"),
                format!("http:\\\\{host}\\a"),
                format!("ht\ntp:////{host}#x"),
            ] {
                assert!(names_inside(&url), "{url}");
            }
        }
    }

    #[test]
    fn the_outside_is_left_alone() {
        for url in [
            "https://example.org/a.png",
            "http://8.8.8.8/a.png",
            "https://10.0.0.1/a.png",
            "https://[2001:db8::1]:8443/a.png",
            "https://localhost.example.org/",
            "https://127.example.org/",
            "https://1.2.3.4.5/",
            "https://notlocalhost/",
            "https://example.org/?u=http://127.0.0.1/",
            "https://example.org/@127.0.0.1",
            "data:image/png;base64,//127.0.0.1/",
            "https://",
        ] {
            assert!(!names_inside(url), "{url}");
        }
    }

    #[test]
    fn literals_are_read_as_addresses() {
        let of = |url: &str| literal_addresses(url);
        assert_eq!(of("http://0x0a.1/"), ["10.0.0.1".parse::<IpAddr>().unwrap(); 2]);
        assert_eq!(of("http://example.org/"), Vec::<IpAddr>::new());
        let mapped = ["::ffff:10.0.0.1", "10.0.0.1"].map(|text| text.parse::<IpAddr>().unwrap());
        assert_eq!(of("http://[::ffff:10.0.0.1]/"), mapped);
    }
}
