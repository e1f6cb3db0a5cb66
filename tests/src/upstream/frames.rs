//! Frames of AWS's event stream, in which Bedrock's answers stream: their bytes are not text.

use serde_json::Value;

use super::Streaming;

/// Type of a header's value: a string.
const STRING: u8 = 7;

impl Streaming {
    /// An event of this type with this JSON.
    #[must_use]
    pub fn frame(self, event: &str, payload: &Value) -> Self {
        self.frame_of(event, &payload.to_string())
    }

    /// An event of this type with any payload.
    #[must_use]
    pub fn frame_of(self, event: &str, payload: &str) -> Self {
        self.say_bytes(frame(event, payload.as_bytes()))
    }
}

/// Lengths of all of it and of the headers, their checksum; headers; payload; checksum of all before.
fn frame(event: &str, payload: &[u8]) -> Vec<u8> {
    let named =
        [(":event-type", event), (":content-type", "application/json"), (":message-type", "event")];
    let headers: Vec<u8> =
        named.into_iter().flat_map(|(name, value)| header(name, value)).collect();
    let mut frame = [length(headers.len() + payload.len() + 16), length(headers.len())].concat();
    frame.extend(checksum(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(checksum(&frame).to_be_bytes());
    frame
}

fn header(name: &str, value: &str) -> Vec<u8> {
    let short = u8::try_from(name.len()).expect("a short name");
    let length = u16::try_from(value.len()).expect("a short value").to_be_bytes();
    [&[short], name.as_bytes(), &[STRING], &length, value.as_bytes()].concat()
}

fn length(bytes: usize) -> [u8; 4] {
    u32::try_from(bytes).expect("a short frame").to_be_bytes()
}

/// CRC-32 as in zip files.
fn checksum(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _bit| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}
