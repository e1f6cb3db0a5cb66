//! Causes of a request that was not sent, as one name each: for operators, who see them as a route's last
//! error. Never an address: that of a proxy may contain a password.

use std::io::ErrorKind;

use super::connect::ConnectError;
use super::pool::BoxError;

/// Cause of an unsent request, without an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnsentCause {
    /// No address belongs to the host's name.
    #[error("host not found")]
    HostNotFound,
    /// Each address of the host refused the connection.
    #[error("connection refused")]
    Refused,
    /// No address of the host could be reached.
    #[error("host not reached")]
    Unreached,
    /// Not connected within the model's connect timeout.
    #[error("connect timed out")]
    TimedOut,
    /// TLS handshake failed, or the certificate was not trusted.
    #[error("TLS failed")]
    Tls,
    /// The operator's proxy did not connect.
    #[error("proxy did not connect")]
    Proxy,
    /// The connection closed before a byte of the body was taken.
    #[error("connection closed before the request was sent")]
    Closed,
    /// HTTP/2: the server reports that it did not process the request.
    #[error("request not processed by the server")]
    Unprocessed,
}

impl UnsentCause {
    /// Cause of a connection that was not made.
    pub(super) fn of_connect(error: &BoxError) -> Self {
        if error.is::<tokio::time::error::Elapsed>() {
            return Self::TimedOut;
        }
        match error.downcast_ref::<ConnectError>() {
            Some(ConnectError::NoHost | ConnectError::NotFound(_)) => Self::HostNotFound,
            Some(ConnectError::Unreached(error))
                if error.kind() == ErrorKind::ConnectionRefused =>
            {
                Self::Refused
            }
            Some(ConnectError::Unreached(_)) => Self::Unreached,
            Some(ConnectError::Name(_) | ConnectError::Tls(_)) => Self::Tls,
            Some(ConnectError::Proxy(_) | ConnectError::Refused(_)) => Self::Proxy,
            None => Self::Closed,
        }
    }
}
