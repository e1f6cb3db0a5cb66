//! The environment of the process. The only file that reads it: all other code gets a lookup, so that a test
//! can choose the variables.

use std::env::VarError;
use std::ffi::OsString;

use holdfast_net::{BadProxy, Proxies};

/// Lookup of an environment variable by its name.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Value of a variable of this process.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
pub(crate) fn process(name: &str) -> Option<String> {
    match std::env::var(name) {
        Ok(value) => Some(value),
        Err(VarError::NotPresent) => None,
        // Not as if it were unset: the check of its value will report that it is wrong.
        Err(VarError::NotUnicode(value)) => Some(value.to_string_lossy().into_owned()),
    }
}

/// Arguments of this process, the name of the program first.
pub fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

/// The operator's proxies, for a command without a configuration file.
///
/// # Errors
///
/// The variable that is wrong, and why.
pub fn proxies() -> Result<Proxies, (&'static str, BadProxy)> {
    Proxies::read(&process)
}

/// Password of a database whose URL on a command line has none, so that no list of processes shows it: that of
/// PostgreSQL's own tools, `PGPASSWORD`.
#[must_use]
pub fn database_password() -> Option<String> {
    overriding(&process, "PGPASSWORD")
}

/// True if the operator allows core dumps, to look for a fault: `HOLDFAST_CORE_DUMPS=1`.
#[must_use]
pub fn allows_core_dumps() -> bool {
    process("HOLDFAST_CORE_DUMPS").as_deref() == Some("1")
}

/// Value of a variable that overrides a setting; an empty one overrides none.
pub(crate) fn overriding(environment: Environment<'_>, name: &str) -> Option<String> {
    environment(name).filter(|value| !value.is_empty())
}
