//! Two requests have one fingerprint exactly when one body is sent for both.
//!
//! Up to the first NUL the input is a body; after it, another one or edits of the first. Every body is
//! also compared with itself in another spelling.
#![no_main]

use holdfast_domain::request::Request;
use holdfast_fuzz::{bound_to, sent};
use holdfast_wire::chat::request::parse;
use libfuzzer_sys::fuzz_target;

/// No request can ask for this, so no bound at all is told apart from every bound.
const UNBOUNDED: u64 = 0;
const EDITS_MAX: usize = 8;
/// Where the input says nothing of how to respell its body.
const WHIMS: [u8; 3] = [0x5a, 0x1b, 0xc6];

fuzz_target!(|input: &[u8]| {
    let nul = input.iter().position(|byte| *byte == 0);
    let (body, rest) = input.split_at(nul.unwrap_or(input.len()));
    let rest = rest.get(1..).unwrap_or_default();
    let Some(request) = read(body) else { return };
    let respelled = respell(body, rest);
    let same = read(&respelled).expect("another spelling can be read");
    check(&request, &same);
    assert!(request == same, "{}", String::from_utf8_lossy(&respelled));
    if let Some(other) = read(rest).or_else(|| read(&edited(body, rest))) {
        check(&request, &other);
    }
});

fn read(body: &[u8]) -> Option<Request> {
    parse(body).ok().map(|parsed| parsed.request)
}

fn check(one: &Request, other: &Request) {
    let same = one == other;
    let (a, b) = (sent(one, UNBOUNDED), sent(other, UNBOUNDED));
    let show = || format!("{}\n{}", String::from_utf8_lossy(&a), String::from_utf8_lossy(&b));
    assert_eq!(bound_to(one) == bound_to(other), same, "fingerprints\n{}", show());
    assert_eq!(a == b, same, "bodies\n{}", show());
}

/// Changes, inserts or takes out bytes: four bytes of `edits` each.
fn edited(body: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    for edit in edits.chunks_exact(4).take(EDITS_MAX) {
        let [what, high, low, byte] = edit else { unreachable!("four bytes each") };
        let at = usize::from(u16::from_be_bytes([*high, *low])) % (body.len() + 1);
        match what % 3 {
            0 => body.insert(at, *byte),
            1 if at < body.len() => drop(body.remove(at)),
            _ if at < body.len() => body[at] = *byte,
            _ => {}
        }
    }
    body
}

/// Puts white space around what has a meaning, and escapes characters that need none. `whims` says
/// where, over and over.
fn respell(body: &[u8], whims: &[u8]) -> Vec<u8> {
    const SPACES: [&[u8]; 4] = [b" ", b"\t", b"\n", b"\r"];
    let mut whims = whims.iter().chain(&WHIMS).cycle();
    let mut out = Vec::with_capacity(body.len() * 2);
    let (mut in_string, mut kept) = (false, 0_usize);
    for &byte in body {
        let whim = whims.next().copied().unwrap_or_default();
        if in_string {
            match byte {
                // What an escape is made of stays: after `\\u` four digits.
                b'u' if kept == 1 => kept = 5,
                b'\\' if kept == 0 => kept = 2,
                b'"' if kept == 0 => in_string = false,
                _ => {}
            }
            let is_plain = kept == 0 && in_string && byte.is_ascii();
            if is_plain && whim & 1 == 1 {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
            } else {
                out.push(byte);
            }
            kept = kept.saturating_sub(1);
            continue;
        }
        let is_structure = b"{}[],:\"".contains(&byte);
        if is_structure && whim & 2 == 2 {
            out.extend_from_slice(SPACES[usize::from(whim >> 2) % SPACES.len()]);
        }
        out.push(byte);
        in_string = byte == b'"';
        if is_structure && !in_string && whim & 16 == 16 {
            out.extend_from_slice(SPACES[usize::from(whim >> 5) % SPACES.len()]);
        }
    }
    out
}
