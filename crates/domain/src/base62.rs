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
    let (words, []) = number.as_chunks_mut::<4>() else { return None };
    // Five digits and four bytes at a time: 62^5 < 2^30, so scale, carry and product fit into 64
    // bits.
    for digits in text.as_bytes().chunks(5) {
        let (mut scale, mut carry) = (1_u64, 0_u64);
        for digit in digits {
            scale = scale.wrapping_mul(62);
            carry = carry.wrapping_mul(62).wrapping_add(digit_of(*digit)?);
        }
        // From the lowest word up, as the carry goes.
        for word in words.iter_mut().rev() {
            let word_before = u64::from(u32::from_be_bytes(*word));
            let value = word_before.wrapping_mul(scale).wrapping_add(carry);
            let [high @ .., a, b, c, d] = value.to_be_bytes();
            *word = [a, b, c, d];
            carry = u64::from(u32::from_be_bytes(high));
        }
        // More than the bits that there are: 22 digits can spell more than 128.
        if carry != 0 {
            return None;
        }
    }
    Some(number)
}

fn digit_of(digit: u8) -> Option<u64> {
    let value = if digit.is_ascii_digit() {
        digit.wrapping_sub(b'0')
    } else if digit.is_ascii_uppercase() {
        digit.wrapping_sub(b'A').wrapping_add(10)
    } else if digit.is_ascii_lowercase() {
        digit.wrapping_sub(b'a').wrapping_add(36)
    } else {
        return None;
    };
    Some(u64::from(value))
}
