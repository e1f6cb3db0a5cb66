//! Interest in events: kinds that have a reader, as far as a process knows.
//!
//! A row without a possible reader is not written. The list in the API reads every kind, for as long as it is
//! kept; without a list (`retention.events = 0`) only webhooks read any. A process learns the kinds from time
//! to time, and a store reads its knowledge: an event of a kind that has a reader from this second on may be
//! missed for a few seconds more.

use std::fmt;
use std::time::Duration;

use super::EventKind;

/// Time for which a row is kept that no list shows: longer than any delivery of it is tried.
pub const UNLISTED_KEPT: Duration = Duration::from_secs(7 * 86_400);

/// Set of kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct EventKinds(u32);

impl EventKinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Every kind, those to come too.
    pub const ALL: Self = Self(u32::MAX);

    /// The set with this kind as well.
    #[must_use]
    pub fn with(self, kind: EventKind) -> Self {
        Self(self.0 | bit(kind))
    }

    /// True if the kind is in the set.
    #[must_use]
    pub fn has(self, kind: EventKind) -> bool {
        self.0 & bit(kind) != 0
    }

    /// The kinds of the set.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL.iter().copied().filter(move |kind| self.has(*kind))
    }
}

impl FromIterator<EventKind> for EventKinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        kinds.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Debug for EventKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Bit of a kind: its place in [`EventKind::ALL`]. A set never leaves its process.
fn bit(kind: EventKind) -> u32 {
    let place = EventKind::ALL.iter().position(|it| *it == kind);
    place.and_then(|place| 1_u32.checked_shl(u32::try_from(place).ok()?)).unwrap_or(0)
}

/// Interest in events, as far as a process knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventInterest {
    /// Time for which the list keeps an event; `None`: there is no list.
    pub listed: Option<Duration>,
    /// Kinds that some webhook is sent.
    pub webhooks: EventKinds,
}

impl EventInterest {
    /// Interest in everything, for good: the assumption until the kinds are known.
    pub const ALL: Self = Self { listed: Some(Duration::MAX), webhooks: EventKinds::ALL };

    /// True if an event of this kind may have a reader.
    #[must_use]
    pub fn wants(&self, kind: EventKind) -> bool {
        self.listed.is_some() || self.webhooks.has(kind)
    }

    /// Age at which a row is deleted.
    #[must_use]
    pub fn kept(&self) -> Duration {
        self.listed.unwrap_or(UNLISTED_KEPT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_bit_of_its_own() {
        for kind in EventKind::ALL {
            let alone = EventKinds::NONE.with(*kind);
            assert_eq!(alone.iter().collect::<Vec<_>>(), [*kind]);
            assert!(EventKinds::ALL.has(*kind) && !EventKinds::NONE.has(*kind));
        }
        let all: EventKinds = EventKind::ALL.iter().copied().collect();
        assert_eq!(all.iter().count(), EventKind::ALL.len());
    }

    #[test]
    fn a_list_wants_every_kind_and_without_one_the_webhooks_do() {
        let low = EventKinds::NONE.with(EventKind::WalletLow);
        let month = Duration::from_secs(30 * 86_400);
        let listed = EventInterest { listed: Some(month), webhooks: EventKinds::NONE };
        assert!(listed.wants(EventKind::WalletClosed));
        let unlisted = EventInterest { listed: None, webhooks: low };
        assert!(unlisted.wants(EventKind::WalletLow) && !unlisted.wants(EventKind::WalletClosed));
        assert_eq!((listed.kept(), unlisted.kept()), (month, UNLISTED_KEPT));
    }
}
