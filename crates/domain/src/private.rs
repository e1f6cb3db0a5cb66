//! Content that must not print: what was asked and answered, and what keeps it. A type that holds
//! such content wraps it where it stands and derives its `Debug`, so that a field that is added later
//! cannot be forgotten by hand-written code.

use std::fmt;
use std::ops::Deref;

/// Content of a caller or a provider. `Debug` shows its length in bytes, and nothing else shows any
/// of it.
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
