//! Bytes as lower-case hexadecimal digits, and back.

pub(crate) fn write(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads exactly `N` bytes; `None` for any other text, upper-case digits too: one value has one spelling.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: Option<Vec<u8>> = text.bytes().map(digit).collect();
    let (pairs, rest) = digits.as_ref()?.as_chunks::<2>();
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    bytes.try_into().ok().filter(|_bytes| rest.is_empty())
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_they_were_written() {
        assert_eq!(write(&[0, 0x9a, 0xff]), "009aff");
        assert_eq!(read("009aff"), Some([0, 0x9a, 0xff]));
        for text in ["", "00", "009aff0", "009aff00", "009AFF", "00 9af", "zz9aff"] {
            assert_eq!(read::<3>(text), None, "{text}");
        }
    }
}
