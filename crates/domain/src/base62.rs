//! 128 and 256 bits as text of letters and digits: short, and of one spelling.

/// Digits of 128 bits.
pub(crate) const LEN_OF_128: usize = 22;
/// Digits of 256 bits.
pub(crate) const LEN_OF_256: usize = 43;
/// The digits in the order of ASCII, so that texts of one length sort as their numbers.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Text of `len` digits, by repeated division of a big-endian number, which is left at zero.
pub(crate) fn write(bytes: &[u8], len: usize) -> String {
    let mut number = bytes.to_vec();
    let mut text = vec![0; len];
    for digit in text.iter_mut().rev() {
        let mut rest: u32 = 0;
        for byte in &mut number {
            let value = (rest << 8) | u32::from(*byte);
            // The rest is below 62, so that a 62nd of rest × 256 + byte fits into a byte.
            *byte = u8::try_from(value / 62).unwrap_or(u8::MAX);
            rest = value % 62;
        }
        *digit = usize::try_from(rest).ok().and_then(|at| DIGITS.get(at)).copied().unwrap_or(b'0');
    }
    text.into_iter().map(char::from).collect()
}

/// Bytes that a text spells; `None` for another character, or for a number that does not fit.
pub(crate) fn read<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut number = [0; N];
    // 128 and 256 bits are whole words, and no caller has another length.
    let (words, []) = number.as_chunks_mut::<8>() else { return None };
    // Ten digits and eight bytes at a time: 62^10 < 2^60, so scale, carry and product fit into 128 bits.
    for digits in text.as_bytes().chunks(10) {
        let (mut scale, mut carry) = (1_u64, 0_u64);
        for digit in digits {
            scale = scale.wrapping_mul(62);
            carry = carry.wrapping_mul(62).wrapping_add(digit_of(*digit)?);
        }
        // From the lowest word up, as the carry goes.
        for word in words.iter_mut().rev() {
            let word_before = u128::from(u64::from_be_bytes(*word));
            let value = word_before.wrapping_mul(scale.into()).wrapping_add(carry.into());
            let bytes = value.to_be_bytes();
            let (high, low) = (bytes.first_chunk::<8>()?, bytes.last_chunk::<8>()?);
            *word = *low;
            carry = u64::from_be_bytes(*high);
        }
        // More than the bits that there are: 22 digits can spell more than 128.
        if carry != 0 {
            return None;
        }
    }
    Some(number)
}

/// Mark of a byte that is no digit.
const NO_DIGIT: u8 = u8::MAX;
/// Value of each byte as a digit: one look for each of the 65 digits that every request brings.
const VALUES: [u8; 256] = {
    let mut values = [NO_DIGIT; 256];
    let mut rest: &mut [u8] = &mut values;
    let mut byte = 0_u8;
    while let [value, after @ ..] = rest {
        *value = value_of(byte);
        byte = byte.wrapping_add(1);
        rest = after;
    }
    values
};

const fn value_of(digit: u8) -> u8 {
    if digit.is_ascii_digit() {
        digit.wrapping_sub(b'0')
    } else if digit.is_ascii_uppercase() {
        digit.wrapping_sub(b'A').wrapping_add(10)
    } else if digit.is_ascii_lowercase() {
        digit.wrapping_sub(b'a').wrapping_add(36)
    } else {
        NO_DIGIT
    }
}

fn digit_of(digit: u8) -> Option<u64> {
    let value = VALUES.get(usize::from(digit)).copied().filter(|value| *value != NO_DIGIT);
    value.map(u64::from)
}
