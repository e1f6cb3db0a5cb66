//! `[roles]`: bounds of what the roles of administration may do.

use std::collections::BTreeMap;

use holdfast_domain::{Currency, Micros};

use crate::document::ConfigTable;

/// A thousand million of a currency: more is a slip.
const ALLOWANCE_MAX: u64 = 1_000_000_000_000_000;

/// `[roles]`
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RolesConfig {
    /// Micros that one actor with the role support refunds in a UTC day, by currency. No refunds in a currency
    /// without an entry.
    pub support_refunds: BTreeMap<Currency, Micros>,
}

pub(crate) fn roles(table: &ConfigTable<'_>) -> RolesConfig {
    let mut support_refunds = BTreeMap::new();
    for (code, field) in table.table("support_refunds").named_fields() {
        let micros = field.count(0..=ALLOWANCE_MAX);
        match code.parse::<Currency>() {
            Ok(currency) => {
                let micros = micros.and_then(|micros| i64::try_from(micros).ok());
                support_refunds.extend(micros.map(|micros| (currency, Micros::new(micros))));
            }
            Err(error) => field.mistake(format_args!("is {error}")),
        }
    }
    table.refuse_unknown();
    RolesConfig { support_refunds }
}
