//! An event on its way to its row: its data are names and values, which a store writes as JSON.

use super::EventKind;
use crate::{EventId, Micros, WalletId};

/// An event to be written. Its moment is that of the transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Id of the event, derived from its content.
    pub id: EventId,
    /// Kind of the event.
    pub kind: EventKind,
    /// Wallet whose holder may read it; `None` if it is only the operator's.
    pub wallet: Option<WalletId>,
    /// Members of its data, in the order of [`EventKind::members`]; `None` is null. Only `currency` may be left
    /// out, if it comes last: the store adds the wallet's.
    pub data: Vec<(&'static str, Option<EventValue>)>,
}

/// Value of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventValue {
    /// A text: an id, a label, words of people.
    Text(String),
    /// A whole number, like an amount in micros.
    Integer(i64),
}

impl EventValue {
    /// A text.
    pub fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }
}

impl From<Micros> for EventValue {
    fn from(amount: Micros) -> Self {
        Self::Integer(amount.get())
    }
}

/// Members of data in the making.
#[derive(Debug, Default)]
pub(crate) struct EventData(pub(crate) Vec<(&'static str, Option<EventValue>)>);

impl EventData {
    /// A member that is a text, or a value that is written as one.
    pub(crate) fn text(self, name: &'static str, value: impl ToString) -> Self {
        self.member(name, Some(EventValue::text(value)))
    }

    /// A member that is a text or null.
    pub(crate) fn opt_text(self, name: &'static str, value: Option<&String>) -> Self {
        self.member(name, value.map(EventValue::text))
    }

    /// A member that is an amount.
    pub(crate) fn micros(self, name: &'static str, value: Micros) -> Self {
        self.member(name, Some(value.into()))
    }

    fn member(mut self, name: &'static str, value: Option<EventValue>) -> Self {
        self.0.push((name, value));
        self
    }
}
