//! Serializer from serde's model to JSON without white space, for this crate's own shapes.
//!
//! `serde_json` does the same, and looks at each byte of a text. Most texts need no escape and names never do,
//! so text is copied here in runs that `plain_prefix` finds eight bytes at once, and raw JSON is not read
//! again. Instructions of either, in November 2026 (`serde_json` 1.0.154 with its `RawValue`):
//!
//! | rendering | here | `serde_json` |
//! |---|---|---|
//! | completion with 400 bytes of text | 8,200 | 13,800: 2 % of a whole request more |
//! | completion with 64 KiB of text | 340,000 | 722,000 |
//! | stream of 100 chunks | 243,000 | 281,000 |
//!
//! Each is the difference of two runs, with 300 and with 100 renderings, by 200:
//! `valgrind --tool=callgrind BENCH --bench --exact render::stream --sample-count 1 --sample-size 300`, where
//! BENCH is what `cargo bench -p holdfast-wire --bench render --no-run --profile release --config
//! 'profile.release.package.holdfast-wire.codegen-units=1'` makes.
//!
//! A test holds the output against `serde_json`'s for arbitrary values.
//!
//! [`RAW`] marks a newtype whose text is JSON already: it is copied as it is, unchecked. The code that wraps a
//! text vouches for it. Shapes that no type here has (tuple structs, variants with data, bytes) are errors, and
//! `render::to_bytes` treats an error as a bug.

use serde::ser::{self, Error, Impossible, Serialize, Serializer};

use crate::json::plain_prefix;

/// Name of the newtype whose text is JSON: copied as it is.
pub(super) const RAW: &str = "holdfast raw JSON";

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Place of the next value.
pub(super) struct Compact<'a> {
    to: &'a mut Vec<u8>,
    is_raw: bool,
}

/// Place of the next element or member.
pub(super) struct Members<'a> {
    to: &'a mut Vec<u8>,
    is_first: bool,
    close: u8,
}

/// Shape without a spelling here.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NotJson(String);

impl Error for NotJson {
    fn custom<T: std::fmt::Display>(what: T) -> Self {
        Self(what.to_string())
    }
}

impl<'a> Compact<'a> {
    pub(super) fn to(to: &'a mut Vec<u8>) -> Self {
        Self { to, is_raw: false }
    }

    fn put(self, json: &[u8]) -> Result<(), NotJson> {
        self.to.extend_from_slice(json);
        Ok(())
    }

    fn open(self, [open, close]: [u8; 2]) -> Members<'a> {
        self.to.push(open);
        Members { to: self.to, is_first: true, close }
    }
}

impl<'a> Members<'a> {
    fn next(&mut self) -> Compact<'_> {
        if !std::mem::take(&mut self.is_first) {
            self.to.push(b',');
        }
        Compact::to(self.to)
    }

    /// The name of a field, which is spelled as in the program: no character of it needs an escape.
    // Inlined with the fields of a shape: the length of each name is then a constant, and its copy is no call.
    #[inline(always)]
    fn name(&mut self, name: &'static str) {
        // Two quotation marks, a colon and perhaps a comma: one reservation instead of four.
        self.to.reserve(name.len() + 4);
        self.to.extend_from_slice(if std::mem::take(&mut self.is_first) { b"\"" } else { b",\"" });
        self.to.extend_from_slice(name.as_bytes());
        self.to.extend_from_slice(b"\":");
    }

    fn value(&mut self, value: &(impl Serialize + ?Sized)) -> Result<(), NotJson> {
        value.serialize(Compact::to(self.to))
    }

    fn close(self) {
        self.to.push(self.close);
    }
}

/// Integers and floats by the one way for all of their widths.
macro_rules! widened {
    ($($method:ident($number:ty) -> $wide:ident;)+) => {$(
        fn $method(self, number: $number) -> Result<(), NotJson> {
            self.$wide(number.into())
        }
    )+};
}

impl<'a> Serializer for Compact<'a> {
    type Ok = ();
    type Error = NotJson;
    type SerializeSeq = Members<'a>;
    type SerializeTuple = Members<'a>;
    type SerializeTupleStruct = Impossible<(), NotJson>;
    type SerializeTupleVariant = Impossible<(), NotJson>;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Members<'a>;
    type SerializeStructVariant = Impossible<(), NotJson>;

    widened! {
        serialize_i8(i8) -> serialize_i64;
        serialize_i16(i16) -> serialize_i64;
        serialize_i32(i32) -> serialize_i64;
        serialize_u8(u8) -> serialize_u64;
        serialize_u16(u16) -> serialize_u64;
        serialize_u32(u32) -> serialize_u64;
        serialize_f32(f32) -> serialize_f64;
    }

    fn serialize_bool(self, flag: bool) -> Result<(), NotJson> {
        self.put(if flag { b"true" } else { b"false" })
    }

    fn serialize_i64(self, number: i64) -> Result<(), NotJson> {
        if number < 0 {
            self.to.push(b'-');
        }
        digits(self.to, number.unsigned_abs());
        Ok(())
    }

    fn serialize_u64(self, number: u64) -> Result<(), NotJson> {
        digits(self.to, number);
        Ok(())
    }

    /// Floats in serde_json's spelling: the API's documentation has a few.
    fn serialize_f64(self, number: f64) -> Result<(), NotJson> {
        self.put(serde_json::Value::from(number).to_string().as_bytes())
    }

    fn serialize_char(self, character: char) -> Result<(), NotJson> {
        self.serialize_str(character.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), NotJson> {
        if self.is_raw {
            return self.put(text.as_bytes());
        }
        string(self.to, text);
        Ok(())
    }

    fn serialize_bytes(self, _bytes: &[u8]) -> Result<(), NotJson> {
        Err(NotJson::custom("bytes"))
    }

    fn serialize_none(self) -> Result<(), NotJson> {
        self.put(b"null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotJson> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NotJson> {
        self.put(b"null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), NotJson> {
        self.put(b"null")
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), NotJson> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), NotJson> {
        value.serialize(Compact { is_raw: name == RAW, ..self })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _index: u32,
        _variant: &'static str,
        _value: &T,
    ) -> Result<(), NotJson> {
        Err(NotJson::custom(name))
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Members<'a>, NotJson> {
        Ok(self.open([b'[', b']']))
    }

    fn serialize_tuple(self, _length: usize) -> Result<Members<'a>, NotJson> {
        Ok(self.open([b'[', b']']))
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleStruct, NotJson> {
        Err(NotJson::custom(name))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeTupleVariant, NotJson> {
        Err(NotJson::custom(name))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Members<'a>, NotJson> {
        Ok(self.open([b'{', b'}']))
    }

    fn serialize_struct(self, _name: &'static str, _length: usize) -> Result<Members<'a>, NotJson> {
        Ok(self.open([b'{', b'}']))
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _index: u32,
        _variant: &'static str,
        _length: usize,
    ) -> Result<Self::SerializeStructVariant, NotJson> {
        Err(NotJson::custom(name))
    }
}

impl ser::SerializeSeq for Members<'_> {
    type Ok = ();
    type Error = NotJson;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotJson> {
        value.serialize(self.next())
    }

    fn end(self) -> Result<(), NotJson> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeTuple for Members<'_> {
    type Ok = ();
    type Error = NotJson;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotJson> {
        value.serialize(self.next())
    }

    fn end(self) -> Result<(), NotJson> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeMap for Members<'_> {
    type Ok = ();
    type Error = NotJson;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, name: &T) -> Result<(), NotJson> {
        // JSON names are strings: a key of another kind is seen by its first byte, after it was
        // written.
        let name_at = self.next().to.len();
        self.value(name)?;
        if self.to.get(name_at) == Some(&b'"') {
            Ok(())
        } else {
            Err(NotJson::custom("a name that is no text"))
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotJson> {
        self.to.push(b':');
        self.value(value)
    }

    fn end(self) -> Result<(), NotJson> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = NotJson;

    #[inline(always)]
    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), NotJson> {
        self.name(name);
        self.value(value)
    }

    fn end(self) -> Result<(), NotJson> {
        self.close();
        Ok(())
    }
}

fn digits(to: &mut Vec<u8>, number: u64) {
    // `u64::MAX` has 20 digits.
    let mut spelled = [b'0'; 20];
    let (mut rest, mut n_digits) = (number, 0);
    for digit in spelled.iter_mut().rev() {
        *digit += u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        n_digits += 1;
        if rest == 0 {
            break;
        }
    }
    to.extend_from_slice(spelled.get(spelled.len() - n_digits..).unwrap_or_default());
}

fn string(to: &mut Vec<u8>, text: &str) {
    to.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_prefix(rest));
        to.extend_from_slice(plain);
        let Some((first, after)) = special.split_first() else { break };
        escape(to, *first);
        rest = after;
    }
    to.push(b'"');
}

fn escape(to: &mut Vec<u8>, special: u8) {
    let letter = match special {
        0x8 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0xc => b'f',
        b'\r' => b'r',
        b'"' | b'\\' => special,
        control => {
            let digit = |half: u8| HEX.get(usize::from(half)).copied().unwrap_or(b'0');
            to.extend_from_slice(b"\\u00");
            to.extend([digit(control >> 4), digit(control & 0xf)]);
            return;
        }
    };
    to.extend([b'\\', letter]);
}
