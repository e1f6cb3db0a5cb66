//! Place that a command works at: beside a database, which a configuration names, or over the
//! network, at a server's administration.
//!
//! | `--config` | `--server` | `HOLDFAST_CONFIG` | `HOLDFAST_SERVER` | place |
//! |---|---|---|---|---|
//! | given | | any | any | that file's database |
//! | | given | any | any | that server |
//! | given | given | any | any | refused |
//! | | | set | set | refused: a guess could change the wrong book |
//! | | | set | | that file's database |
//! | | | | set | that server |
//! | | | | | the database of the embedded default |
//!
//! An admin key is read from the environment or from a file that only its owner can read. Never from an
//! argument: all users of the machine see those. `http://` is for loopback: on other addresses a key would
//! cross a network in plain text.

use std::fmt;
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use holdfast_net::{AdminUrl, BadAdminUrl};

use crate::config::FILE_VARIABLE;
use crate::environment::{self, Environment, overriding};
use crate::value::Secret;

const SERVER_VARIABLE: &str = "HOLDFAST_SERVER";
const KEY_VARIABLE: &str = "HOLDFAST_ADMIN_KEY";
const KEY_FILE_VARIABLE: &str = "HOLDFAST_ADMIN_KEY_FILE";
/// Permissions of users other than the owner.
const OTHERS: u32 = 0o077;

/// Place that a command works at.
#[derive(Debug)]
pub enum CommandPlace {
    /// Beside the database of this file, or of the embedded default.
    Database(Option<PathBuf>),
    /// Over the network: the address of a server's administration.
    Server(AdminUrl),
}

/// Failure to find a command's place; its text names the setting to set.
#[derive(Debug, thiserror::Error)]
pub enum BadPlace {
    #[error("--server and --config are two places: give one of them")]
    BothFlags,
    #[error(
        "{SERVER_VARIABLE} and {FILE_VARIABLE} are both set, so that the ledger is ambiguous: unset one \
         of them, or give --server or --config"
    )]
    BothVariables,
    #[error("{0} is {1}")]
    Url(PlaceSource, #[source] BadAdminUrl),
    #[error(
        "{0} is http:// beyond this machine, where an admin key would cross a network in plain text: write \
         the https:// address that admin.url names, or forward a port of this machine to the server"
    )]
    Plain(PlaceSource),
    #[error(
        "there is no admin key: set {KEY_VARIABLE}, or {KEY_FILE_VARIABLE} to a file with one; \
         `holdfast admin-key issue` with direct database access creates the first"
    )]
    NoKey,
    #[error("{KEY_VARIABLE} and {KEY_FILE_VARIABLE} are both set: unset one of them")]
    BothKeys,
    #[error("{KEY_FILE_VARIABLE}: {0} cannot be read: {1}")]
    KeyFile(PathBuf, #[source] std::io::Error),
    #[error("{KEY_FILE_VARIABLE}: others may read {path}: run `chmod 600 {path}`", path = .0.display())]
    KeyFileOpen(PathBuf),
    #[error("{0} has no admin key: one begins with hfa_ and has no blanks in it")]
    NotAKey(&'static str),
}

/// Source of a server's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceSource {
    Flag,
    Variable,
}

impl fmt::Display for PlaceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "--server",
            Self::Variable => SERVER_VARIABLE,
        })
    }
}

/// Place of a command with these flags, in the environment of this process.
///
/// # Errors
///
/// A [`BadPlace`] if two places are named, or a server that cannot be used.
pub fn place(config: Option<&Path>, server: Option<&str>) -> Result<CommandPlace, BadPlace> {
    place_in(config, server, &environment::process)
}

fn place_in(
    config: Option<&Path>,
    server: Option<&str>,
    environment: Environment<'_>,
) -> Result<CommandPlace, BadPlace> {
    let file = || overriding(environment, FILE_VARIABLE).map(PathBuf::from);
    let (origin, url) = match (config, server) {
        (Some(_), Some(_)) => return Err(BadPlace::BothFlags),
        (Some(config), None) => return Ok(CommandPlace::Database(Some(config.to_path_buf()))),
        (None, Some(server)) => (PlaceSource::Flag, server.to_owned()),
        (None, None) => match (overriding(environment, SERVER_VARIABLE), file()) {
            (Some(_), Some(_)) => return Err(BadPlace::BothVariables),
            (Some(server), None) => (PlaceSource::Variable, server),
            (None, file) => return Ok(CommandPlace::Database(file)),
        },
    };
    let url = AdminUrl::parse(&url).map_err(|error| BadPlace::Url(origin, error))?;
    if !url.is_https() && !is_loopback(url.host()) {
        return Err(BadPlace::Plain(origin));
    }
    Ok(CommandPlace::Server(url))
}

/// The admin key that this process has in its environment.
///
/// # Errors
///
/// A [`BadPlace`] if there is none, or two, or others may read it.
pub fn admin_key() -> Result<Secret, BadPlace> {
    key(&environment::process)
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

fn key(environment: Environment<'_>) -> Result<Secret, BadPlace> {
    let (own, file) =
        (overriding(environment, KEY_VARIABLE), overriding(environment, KEY_FILE_VARIABLE));
    let (name, text) = match (own, file) {
        (Some(_), Some(_)) => return Err(BadPlace::BothKeys),
        (None, None) => return Err(BadPlace::NoKey),
        (Some(key), None) => (KEY_VARIABLE, key),
        (None, Some(file)) => (KEY_FILE_VARIABLE, in_file(PathBuf::from(file))?),
    };
    let key = text.trim_end();
    let is_plain = key.starts_with("hfa_") && key.bytes().all(|byte| byte.is_ascii_graphic());
    if is_plain { Ok(Secret::new(key)) } else { Err(BadPlace::NotAKey(name)) }
}

fn in_file(file: PathBuf) -> Result<String, BadPlace> {
    let failed = |error| BadPlace::KeyFile(file.clone(), error);
    let mode = std::fs::metadata(&file).map_err(failed)?.mode();
    if mode & OTHERS != 0 {
        return Err(BadPlace::KeyFileOpen(file));
    }
    std::fs::read_to_string(&file).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const URL: &str = "https://admin.example.com";

    fn lookup(variables: &[(&str, &str)], name: &str) -> Option<String> {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    }

    /// Place in an environment of these variables: a file, a server, or what is wrong.
    fn told(flags: [Option<&str>; 2], variables: &[(&str, &str)]) -> String {
        let [config, server] = flags;
        match place_in(config.map(Path::new), server, &|name| lookup(variables, name)) {
            Ok(CommandPlace::Database(None)) => "embedded".to_owned(),
            Ok(CommandPlace::Database(Some(file))) => format!("file {}", file.display()),
            Ok(CommandPlace::Server(url)) => format!("server {url}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_flag_wins_and_two_variables_are_asked_about() {
        let both = [(FILE_VARIABLE, "h.toml"), (SERVER_VARIABLE, URL)];
        let server = format!("server {URL}");
        for (flags, variables, expected) in [
            ([None, None], &both[..0], "embedded"),
            ([None, None], &both[..1], "file h.toml"),
            ([Some("own.toml"), None], &both, "file own.toml"),
            ([None, Some(URL)], &both, &server),
            ([None, None], &both[1..], &server),
            ([None, None], &[(SERVER_VARIABLE, ""), (FILE_VARIABLE, "h.toml")], "file h.toml"),
        ] {
            assert_eq!(told(flags, variables), expected);
        }
        let refused = told([None, None], &both);
        assert!(refused.contains(SERVER_VARIABLE) && refused.contains(FILE_VARIABLE), "{refused}");
        assert!(told([Some("h.toml"), Some(URL)], &[]).contains("two places"));
    }

    #[test]
    fn plain_http_is_for_loopback() {
        for url in ["http://localhost:8081", "http://127.0.0.1:1", "http://[::1]:1"] {
            assert_eq!(told([None, Some(url)], &[]), format!("server {url}"));
        }
        for url in ["http://admin.example.com", "http://10.0.0.1:8081", "http://localhost.evil"] {
            assert!(told([None, Some(url)], &[]).contains("plain text"), "{url}");
        }
        assert!(told([None, Some("admin.example.com")], &[]).starts_with("--server is not"));
    }

    #[test]
    fn a_key_comes_from_one_place() {
        for (variables, expected) in [
            (&[][..], "there is no admin key"),
            (&[(KEY_VARIABLE, "hfa_1_2"), (KEY_FILE_VARIABLE, "f")], "both set"),
            (&[(KEY_VARIABLE, "hfk_1_2")], "has no admin key"),
            (&[(KEY_VARIABLE, "hfa_1 2")], "has no admin key"),
            (&[(KEY_FILE_VARIABLE, "/nowhere/key")], "cannot be read"),
        ] {
            let refused = key(&|name| lookup(variables, name)).unwrap_err().to_string();
            assert!(refused.contains(expected) && !refused.contains("hfk_"), "{refused}");
        }
        let known = key(&|name| lookup(&[(KEY_VARIABLE, "hfa_1_2")], name)).unwrap();
        assert_eq!(known.expose(), "hfa_1_2");
    }
}
