//! Results of attempts, and the consequence of each. [`follow_up`] is the only place that decides when a
//! delivery is tried again, is dead, or takes its webhook with it.
//!
//! | result | while tries are left | after the last |
//! |---|---|---|
//! | 2xx | delivered | delivered |
//! | 410 | the webhook is disabled | the webhook is disabled |
//! | 3xx, which is not followed; any other status | retry | dead |
//! | the URL, or an address of its host, is refused | retry | dead |
//! | the host is not found, not reached, fails at TLS, breaks off or is too slow | retry | dead |
//! | no server secret is known that signs it | retry | dead |
//!
//! A refusal is tried again like the rest: the owner of a name may mend it, and the operator the
//! list of origins.

use std::time::Duration;

use super::schedule::pause_after;

/// Dead deliveries in a row that disable a webhook.
const DEAD_IN_A_ROW_MAX: u32 = 10;

/// Result of one attempt. Of an answer it has only the status, and no word of the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryResult {
    /// The receiver answered with this status.
    Answered(u16),
    /// The URL is none that may be sent to, or not any more.
    UrlRefused,
    /// The host has no address.
    HostNotFound,
    /// An address of the host is not public: none was connected to.
    AddressRefused,
    /// No address of the host took the connection.
    Unreached,
    /// TLS did not come about: most often the certificate.
    TlsFailed,
    /// The connection broke, or what came on it is no HTTP.
    Broken,
    /// The time for one try was up.
    TimedOut,
    /// The server secret that its signature is derived from is not known here: no request was sent.
    Unsigned,
}

impl TryResult {
    /// The name in rows and metrics, out of a closed set.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Answered(200..=299) => "delivered",
            Self::Answered(300..=399) => "redirect",
            Self::Answered(410) => "gone",
            Self::Answered(400..=499) => "client_error",
            Self::Answered(500..=599) => "server_error",
            Self::Answered(_) => "unknown_status",
            Self::UrlRefused => "url_refused",
            Self::HostNotFound => "host_not_found",
            Self::AddressRefused => "address_refused",
            Self::Unreached => "unreached",
            Self::TlsFailed => "tls_failed",
            Self::Broken => "broken",
            Self::TimedOut => "timed_out",
            Self::Unsigned => "unsigned",
        }
    }

    /// Status of the answer, if there was one.
    #[must_use]
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Answered(status) => Some(status),
            Self::UrlRefused
            | Self::HostNotFound
            | Self::AddressRefused
            | Self::Unreached
            | Self::TlsFailed
            | Self::Broken
            | Self::TimedOut
            | Self::Unsigned => None,
        }
    }
}

/// Failures before the try that is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryHistory {
    /// Tries of this delivery that failed.
    pub tries_failed: u32,
    /// Deliveries of the webhook that are dead, since the last one that was delivered.
    pub dead_in_a_row: u32,
}

/// Consequence of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FollowUp {
    /// The receiver has it: no more is sent, and no dead delivery counts any longer.
    Delivered,
    /// Try again after this pause.
    Retry(Duration),
    /// The delivery is dead.
    Dead,
    /// The delivery is dead, and its webhook gets no deliveries until a person enables it.
    Disable(DisableReason),
}

/// Reason for which a webhook is disabled: by a person, or automatically.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisableReason {
    /// A person requested it.
    Asked,
    /// The receiver answered 410: it accepts no more.
    Gone,
    /// Too many deliveries in a row are dead.
    DeadInARow,
}

impl DisableReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Asked, Self::Gone, Self::DeadInARow];

    /// The name in rows and events.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Gone => "gone",
            Self::DeadInARow => "dead_in_a_row",
        }
    }
}

/// Decides what follows a try. `random` spreads the next ones: any 32 bits.
#[must_use]
pub fn follow_up(result: TryResult, history: DeliveryHistory, random: u32) -> FollowUp {
    match result {
        TryResult::Answered(200..=299) => FollowUp::Delivered,
        TryResult::Answered(410) => FollowUp::Disable(DisableReason::Gone),
        TryResult::Answered(_)
        | TryResult::UrlRefused
        | TryResult::HostNotFound
        | TryResult::AddressRefused
        | TryResult::Unreached
        | TryResult::TlsFailed
        | TryResult::Broken
        | TryResult::TimedOut
        | TryResult::Unsigned => {
            match pause_after(history.tries_failed.saturating_add(1), random) {
                Some(pause) => FollowUp::Retry(pause),
                // With this one.
                None if history.dead_in_a_row.saturating_add(1) >= DEAD_IN_A_ROW_MAX => {
                    FollowUp::Disable(DisableReason::DeadInARow)
                }
                None => FollowUp::Dead,
            }
        }
    }
}
