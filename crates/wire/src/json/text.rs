//! Strings: borrowed where they have no escapes, else put together from their plain runs.

use std::borrow::Cow;

use super::{BadJson, Fault, Reader};

impl<'a> Reader<'a> {
    pub(super) fn string(&mut self) -> Result<Cow<'a, str>, BadJson> {
        self.want(b'"')?;
        let first = self.run()?;
        if self.take(b'"') {
            return Ok(Cow::Borrowed(first));
        }
        let mut text = String::with_capacity(first.len().saturating_mul(2));
        text.push_str(first);
        while self.take(b'\\') {
            text.push(self.escape()?);
            text.push_str(self.run()?);
        }
        self.want(b'"')?;
        Ok(Cow::Owned(text))
    }

    /// Reads up to a quotation mark or a backslash.
    fn run(&mut self) -> Result<&'a str, BadJson> {
        let from = self.at;
        self.at += plain_prefix(self.rest());
        match self.peek() {
            Some(b'"' | b'\\') => self.since(from),
            Some(_) => Err(self.fault(Fault::Control)),
            None => Err(self.fault(Fault::End)),
        }
    }

    fn escape(&mut self) -> Result<char, BadJson> {
        let letter = self.peek().ok_or(self.fault(Fault::End))?;
        let plain = match letter {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.scalar();
            }
            _ => return Err(self.fault(Fault::Syntax)),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Reads what `\u` announced: four digits, or eight in two escapes.
    fn scalar(&mut self) -> Result<char, BadJson> {
        let surrogate = self.fault(Fault::Surrogate);
        let first = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            if !self.rest().starts_with(b"\\u") {
                return Err(surrogate);
            }
            self.at += 2;
            let second = self.hex()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(surrogate);
            }
            0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(code).ok_or(surrogate)
    }

    fn hex(&mut self) -> Result<u32, BadJson> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or(self.unexpected())?;
            self.at += 1;
        }
        Ok(code)
    }
}

/// How many of the first bytes are neither quotation mark, backslash nor control character. Whole
/// blocks first: that loop has no branch within a block and compiles to vector instructions.
fn plain_prefix(bytes: &[u8]) -> usize {
    const BLOCK: usize = 32;
    let blocks = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| !block.iter().fold(false, |any, byte| any | is_special(*byte)));
    let whole = blocks.count() * BLOCK;
    let rest = bytes.get(whole..).unwrap_or_default();
    whole + rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len())
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}
