//! An error in words, with all its causes: the text of a log line. An error's own `Display` names its own level
//! only.

use std::error::Error;
use std::fmt;

/// Shows an error and its causes, the innermost last, with colons between.
///
/// ```
/// use holdfast_domain::ErrorChain;
/// use holdfast_domain::ports::Unavailable;
///
/// let error = Unavailable(Box::new(std::io::Error::other("no route to host")));
/// assert!(ErrorChain(&error).to_string().ends_with(": no route to host"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ErrorChain<'a>(pub &'a dyn Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.0, f)?;
        let mut error = self.0;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}
