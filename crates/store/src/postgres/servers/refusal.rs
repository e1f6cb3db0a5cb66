//! Reasons why a server is not used. Among several servers their texts name neither a user nor a password, nor what a
//! server says of them; the error of a single server stays the driver's.

use std::fmt;
use std::io;
use std::sync::Arc;

use sea_orm::{DbErr, RuntimeErr};

use crate::error::ConnectError;
use crate::postgres::error::has_code;

/// Begin of the driver's message about a connection that was closed instead of an answer to its first packet: the byte
/// that it looks at is still zero.
const NO_ANSWER: &str = "unexpected response from SSLRequest: 0x00";

/// Meanings of SQLSTATEs with which a server refuses a connection.
const ANSWERS: [(&str, &str); 4] = [
    ("28", "refuses the login"),
    ("3D000", "has no such database"),
    ("57P03", "starts or shuts down"),
    ("53300", "has no connection left"),
];

/// No server of a URL is a primary that can be used: each with its reason.
#[derive(Debug)]
pub(in crate::postgres) struct NoPrimary(Vec<(String, HostRefusal)>);

/// Reason why one server is not used.
#[derive(Debug)]
pub(super) enum HostRefusal {
    /// Server that follows another one.
    Standby,
    /// Server with the data of another database.
    OtherSystem,
    /// Server that was replaced: a copy of it was promoted.
    OldTimeline { timeline: i32, followed: i32 },
    /// Commits that no standby confirms.
    Unproven,
    /// No answer in the time of the search.
    Silent,
    /// The connection was closed before the server answered.
    HungUp,
    /// Server that cannot be reached, or refuses the connection.
    Driver(sqlx::Error),
}

impl HostRefusal {
    pub(super) fn of_driver(error: sqlx::Error) -> Self {
        let is_closed = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset)
        };
        let is_hung_up = matches!(&error, sqlx::Error::Io(error) if is_closed(error))
            || matches!(&error, sqlx::Error::Protocol(text) if text.starts_with(NO_ANSWER));
        if is_hung_up { Self::HungUp } else { Self::Driver(error) }
    }

    /// Failure of the first commit of a connection. A lock or a commit that was not to be had in time is named; other
    /// errors are the connection's.
    pub(super) fn of_proof(error: sqlx::Error) -> Self {
        let is_late = matches!(&error, sqlx::Error::Io(io) if io.kind() == io::ErrorKind::TimedOut);
        if is_late || has_code(&error, &["55P03", "57014"]) {
            return Self::Unproven;
        }
        Self::of_driver(error)
    }

    fn is_no_database(&self) -> bool {
        matches!(self, Self::Driver(error) if has_code(error, &["3D000"]))
    }
}

impl fmt::Display for HostRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::Standby => return f.write_str("is a standby"),
            Self::OtherSystem => {
                return f.write_str(
                    "has another system identifier than the server before it: restart the gateway if that is meant",
                );
            }
            Self::OldTimeline { timeline, followed } => {
                return write!(
                    f,
                    "is on timeline {timeline} and was replaced by a primary on timeline {followed}"
                );
            }
            Self::Unproven => {
                return f.write_str("does not commit: no synchronous standby confirms a commit");
            }
            Self::Silent => return f.write_str("does not answer"),
            Self::HungUp => {
                return f.write_str(
                    "closed the connection before it answered: a proxy does that while it knows no primary",
                );
            }
            Self::Driver(error) => error,
        };
        if let Some(answer) = error.as_database_error() {
            // By its code: the server's own text may name the user.
            let known = ANSWERS.iter().find(|(code, _text)| has_code(error, &[code]));
            return match (known, answer.code()) {
                (Some((_code, text)), _) => f.write_str(text),
                (None, Some(code)) => write!(f, "refuses the connection ({code})"),
                (None, None) => f.write_str("refuses the connection"),
            };
        }
        if let sqlx::Error::Io(error) = error {
            return write!(f, "cannot be reached ({error})");
        }
        if let sqlx::Error::Tls(error) = error {
            return write!(f, "has no TLS that is trusted ({error})");
        }
        write!(f, "does not speak as a PostgreSQL server ({error})")
    }
}

impl NoPrimary {
    pub(super) fn new(refusals: Vec<(String, HostRefusal)>) -> Self {
        Self(refusals)
    }

    /// The driver's own error, if there is one server or none has the database: it has more to say.
    fn into_driver(mut self) -> Result<sqlx::Error, Self> {
        let is_one = self.0.len() == 1 || self.0.iter().all(|(_host, it)| it.is_no_database());
        match self.0.pop() {
            Some((_host, HostRefusal::Driver(error))) if is_one => Ok(error),
            Some(last) => {
                self.0.push(last);
                Err(self)
            }
            None => Err(self),
        }
    }
}

impl fmt::Display for NoPrimary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(host, refusal)] = self.0.as_slice() {
            return write!(f, "the server {host} {refusal}");
        }
        f.write_str("none of the servers is a primary that can be used")?;
        for (n, (host, refusal)) in self.0.iter().enumerate() {
            write!(f, "{} {host} {refusal}", if n == 0 { ":" } else { ";" })?;
        }
        Ok(())
    }
}

impl std::error::Error for NoPrimary {}

impl From<NoPrimary> for sqlx::Error {
    fn from(failure: NoPrimary) -> Self {
        let of_ours = |failure| Self::Io(io::Error::new(io::ErrorKind::NotConnected, failure));
        failure.into_driver().unwrap_or_else(of_ours)
    }
}

impl From<NoPrimary> for ConnectError {
    fn from(failure: NoPrimary) -> Self {
        match failure.into_driver() {
            Ok(error) => Self::Server(DbErr::Conn(RuntimeErr::SqlxError(Arc::new(error)))),
            Err(NoPrimary(refusals)) if matches!(refusals[..], [(_, HostRefusal::Standby)]) => {
                Self::Standby
            }
            Err(failure) => Self::NoPrimary(Box::new(failure)),
        }
    }
}
