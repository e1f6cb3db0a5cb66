//! Content that must not print: requests, answers, and the types that keep them. A type that holds such content
//! wraps it in its field and derives its `Debug`, so that a field that is added later cannot be forgotten by
//! hand-written code.

use std::fmt;
use std::ops::Deref;

/// Content of a caller or a provider. `Debug` shows its length in bytes, and no formatter shows its text.
///
/// ```
/// use holdfast_domain::private::Private;
///
/// let prompt = Private(String::from("hello"));
/// assert_eq!(format!("{:?}", Some(&prompt)), "Some(5 bytes)");
/// assert!(prompt.starts_with("he"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Private<T>(pub T);

impl<T> Deref for Private<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Deref<Target: AsRef<[u8]>>> fmt::Debug for Private<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not through `debug_struct`: `{:#?}` must not show more than `{:?}` does.
        write!(f, "{} bytes", self.0.as_ref().len())
    }
}

/// `Debug` of a type as one text, which a macro takes in place of an `impl` for each type that must not print
/// its members, or has too many of them. A type whose members may print derives `Debug`.
///
/// ```
/// struct Token {
///     id: u32,
///     secret: String,
/// }
/// holdfast_domain::debug_as!(Token as it: "Token({}, …)", it.id);
/// // impl Debug for Token { fn fmt(&self, f) { let it = self; write!(f, "Token({}, …)", it.id) } }
///
/// struct Cache(Vec<Token>);
/// holdfast_domain::debug_as!(Cache: "Cache");
/// // impl Debug for Cache { fn fmt(&self, f) { f.write_str("Cache") } }
///
/// let token = Token { id: 7, secret: "s3cret".to_owned() };
/// assert_eq!(token.secret.len(), 6);
/// assert_eq!(format!("{token:?}"), "Token(7, …)");
/// assert_eq!(format!("{:?}", Some(Cache(vec![token]))), "Some(Cache)");
/// ```
#[macro_export]
macro_rules! debug_as {
    ($type:ty: $text:literal) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str($text)
            }
        }
    };
    ($type:ty as $it:ident: $text:literal $(, $part:expr)* $(,)?) => {
        impl ::std::fmt::Debug for $type {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $it = self;
                ::std::write!(f, $text $(, $part)*)
            }
        }
    };
}

/// `Debug` of keys and secrets: the name of the type. Their length is that of every other one.
macro_rules! unprinted {
    ($($name:ident),+ $(,)?) => {$(
        impl ::std::fmt::Debug for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(concat!(stringify!($name), "(…)"))
            }
        }
    )+};
}

pub(crate) use unprinted;
