//! Frames of AWS's event stream, made for tests and benchmarks.

/// A frame of AWS's event stream; one whose name begins with `!` is an exception.
pub(crate) fn frame((name, payload): (&str, &str)) -> Vec<u8> {
    let (kind, of, name) = match name.strip_prefix('!') {
        Some(name) => ("exception", ":exception-type", name),
        None => ("event", ":event-type", name),
    };
    let mut headers = Vec::new();
    for (name, value) in
        [(of, name), (":content-type", "application/json"), (":message-type", kind)]
    {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend_from_slice(name.as_bytes());
        headers.push(7);
        headers.extend_from_slice(&u16::try_from(value.len()).unwrap().to_be_bytes());
        headers.extend_from_slice(value.as_bytes());
    }
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let mut frame = [length(headers.len() + payload.len() + 16), length(headers.len())].concat();
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame.extend_from_slice(&headers);
    frame.extend_from_slice(payload.as_bytes());
    frame.extend_from_slice(&checksum(&frame).to_be_bytes());
    frame
}

fn checksum(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _bit| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}
