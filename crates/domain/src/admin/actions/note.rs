//! Rows of the audit log without another change.

use crate::admin::field_change::FieldChange;
use crate::admin::{AccountEffect, ResourceId, UseCase};
use crate::{OperationId, PersonId};

/// A row of the audit log, and no other change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub(super) use_case: UseCase,
    thing: ResourceId,
    change: FieldChange,
}

impl Note {
    /// A requested end of an operation. The transition is offered after it, and judged by the operation.
    #[must_use]
    pub fn requested_end(operation: OperationId, use_case: UseCase) -> Self {
        let change = FieldChange::set("asked", "true");
        Self { use_case, thing: ResourceId::Operation(operation), change }
    }

    /// Absurd costs of so many operations that are taken out of the sums of usage, the first of them named. The sums
    /// are corrected after it.
    #[must_use]
    pub fn excluded_costs(first: OperationId, operations: u64) -> Self {
        let change = FieldChange::set("costs_excluded", operations);
        Self { use_case: UseCase::UsageExcludeCosts, thing: ResourceId::Operation(first), change }
    }

    /// A read of a wallet, or by the actor's own identity of all wallets.
    #[must_use]
    pub fn read(use_case: UseCase, thing: ResourceId) -> Self {
        Self { use_case, thing, change: FieldChange::set("read", "true") }
    }

    /// Failed sign-ins of one address group within an hour, of a person if one with a password has the e-mail address.
    #[must_use]
    pub fn failed_sign_ins(person: Option<PersonId>, attempts: u64) -> Self {
        let thing = person.map_or(ResourceId::Unknown, ResourceId::Person);
        let change = FieldChange::set("failed_attempts", attempts);
        Self { use_case: UseCase::PersonSignInFailed, thing, change }
    }

    pub(super) fn effect(&self) -> AccountEffect {
        AccountEffect::done(Vec::new(), self.thing, vec![self.change.clone()])
    }
}
