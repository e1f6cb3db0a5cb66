//! Names of resources, for pages and lists that have only their ids.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::admin::{ResourceId, UseCase};

use crate::{Accounts, Principal, Result};

impl Accounts {
    /// Names of wallets, API keys and admin keys, and e-mail addresses of people, looked up at once. A resource that
    /// the principal may not read is missing, as is one without a name. The addresses of people are noted as a read.
    pub async fn names(
        &self,
        principal: &Principal,
        mut things: BTreeSet<ResourceId>,
    ) -> Result<BTreeMap<ResourceId, String>> {
        things.retain(|thing| {
            thing.read_use_case().is_some_and(|use_case| principal.role.may(use_case))
        });
        if things.is_empty() {
            return Ok(BTreeMap::new());
        }
        let names = self.book.names(things, principal.only_wallet()).await?;
        if names.keys().any(|thing| matches!(thing, ResourceId::Person(_))) {
            self.note_read(principal, UseCase::PersonRead, None).await?;
        }
        Ok(names)
    }
}
