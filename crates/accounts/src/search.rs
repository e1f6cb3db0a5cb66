//! Search: one term, and the resources that it may name.
//!
//! | term | finds |
//! |---|---|
//! | an id, 6 digits of one, `chatcmpl_…`, `call_…` | the resource; the operation |
//! | a request key | the operation of it under each API key in reach, whose ids are derived |
//! | a text | wallets and API keys by name or external id, people by e-mail address |
//! | a whole `x-request-id` | the refused request |
//!
//! A match is kept if the role reads its kind and its wallet is in reach. So a term that names another wallet's
//! resource and a term without any match have the same answer, for which the same statements are sent.
//!
//! Not found by it: an answered request by its `x-request-id`, which no row has.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::admin::listing::{Order, PAGE_MAX, PageRequest, PersonFilter};
use holdfast_domain::admin::search::{IdPrefix, ResourceMatch};
use holdfast_domain::admin::{ResourceId, UseCase};
use holdfast_domain::text::normal_form;
use holdfast_domain::{OperationId, RequestId, RequestKey, WalletId};
use uuid::Uuid;

use crate::{Accounts, AccountsError, Principal, Result};

/// Beginning of the ids of completions, as callers see them.
const COMPLETION: &str = "chatcmpl_";

/// Term of a search: 1 to 128 printable characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerm(String);

/// Term that no search is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a search term has 1 to {} printable characters", SearchTerm::CHARS_MAX)]
pub struct BadSearchTerm;

impl SearchTerm {
    /// Characters that it has at most.
    pub const CHARS_MAX: usize = 128;

    /// The term without blanks around it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::str::FromStr for SearchTerm {
    type Err = BadSearchTerm;

    fn from_str(text: &str) -> Result<Self, BadSearchTerm> {
        let text = text.trim();
        let is_sound = (1..=Self::CHARS_MAX).contains(&text.chars().count())
            && !text.contains(char::is_control);
        is_sound.then(|| Self(text.to_owned())).ok_or(BadSearchTerm)
    }
}

/// Bounds of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Matches of each kind that an answer has at most.
    pub matches: u32,
    /// API keys under which a request key is looked up at most.
    pub api_keys: u32,
}

impl Default for SearchLimits {
    fn default() -> Self {
        Self { matches: 20, api_keys: 10_000 }
    }
}

/// Match of a term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchHit {
    /// A resource, and the wallet that it belongs to.
    Resource(ResourceId, Option<WalletId>),
    /// A refused request, and the wallet of its API key.
    RefusedRequest(RequestId, WalletId),
}

/// Outcome of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchOutcome {
    /// Matches that the principal may read: first those of an id, then those of a name.
    pub hits: Vec<SearchHit>,
    /// True if more of a kind match than [`SearchLimits::matches`].
    pub has_more: bool,
    /// True if the term is a request key, and more API keys are in reach than it was looked up under.
    pub needs_api_key: bool,
}

impl Accounts {
    /// Resources that the term may name, as far as the principal may read them.
    pub async fn search(
        &self,
        principal: &Principal,
        term: &SearchTerm,
        limits: SearchLimits,
    ) -> Result<SearchOutcome> {
        let term = term.as_str();
        // One more of each kind shows that there are more.
        let limit = u64::from(limits.matches).saturating_add(1);
        let mut found = self.matches_of_id(principal, term, limit).await?;
        let api_keys = u64::from(limits.api_keys);
        let (of_key, needs_api_key) =
            self.matches_of_request_key(principal, term, api_keys).await?;
        found.extend(of_key);
        found.extend(self.matches_of_text(principal, term, limit).await?);
        let mut seen = BTreeSet::new();
        // Before the matches are counted: `has_more` must not count resources that the reader may
        // not see.
        found.retain(|it| is_readable(principal, it) && seen.insert(it.thing));
        let readable = found.len();
        let mut of_kinds: BTreeMap<&str, u32> = BTreeMap::new();
        found.retain(|it| {
            let of_kind = of_kinds.entry(it.thing.kind()).or_default();
            *of_kind = of_kind.saturating_add(1);
            *of_kind <= limits.matches
        });
        let has_more = found.len() < readable;
        let resource = |it: ResourceMatch| SearchHit::Resource(it.thing, it.wallet);
        let refused = self.refusal_of_id(principal, term).await?;
        let hits = found.into_iter().map(resource).chain(refused).collect();
        Ok(SearchOutcome { hits, has_more, needs_api_key })
    }

    /// The refused request of a whole `x-request-id`.
    async fn refusal_of_id(&self, principal: &Principal, term: &str) -> Result<Option<SearchHit>> {
        let Ok(id) = Uuid::try_parse(term) else { return Ok(None) };
        // No match, and no error: the term may name resources that this role reads.
        if !principal.role.may(UseCase::RefusalRead) {
            return Ok(None);
        }
        match self.refused_request(principal, RequestId::from(id)).await {
            Ok(request) => Ok(Some(SearchHit::RefusedRequest(request.id, request.wallet))),
            Err(AccountsError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Resources of an id, or of the first digits of one.
    async fn matches_of_id(
        &self,
        principal: &Principal,
        term: &str,
        limit: u64,
    ) -> Result<Vec<ResourceMatch>> {
        if let Some((operation, _at)) = OperationId::of_tool_call(term) {
            return Ok(self.book.existing_operations(vec![operation]).await?);
        }
        let digits = term.strip_prefix(COMPLETION);
        let Some(prefix) = IdPrefix::parse(digits.unwrap_or(term)) else { return Ok(Vec::new()) };
        let own = principal.only_wallet();
        let mut found = self.book.resources_by_id(prefix, own, limit).await?;
        found.retain(|it| digits.is_none() || matches!(it.thing, ResourceId::Operation(_)));
        Ok(found)
    }

    /// Operations of a request key, and whether there are too many API keys to derive them all.
    async fn matches_of_request_key(
        &self,
        principal: &Principal,
        term: &str,
        limit: u64,
    ) -> Result<(Vec<ResourceMatch>, bool)> {
        let Ok(request_key) = term.to_ascii_lowercase().parse::<RequestKey>() else {
            return Ok((Vec::new(), false));
        };
        if !principal.role.may(UseCase::OperationRead) {
            return Ok((Vec::new(), false));
        }
        let keys = self.book.api_key_ids(principal.only_wallet(), limit.saturating_add(1)).await?;
        if u64::try_from(keys.len()).unwrap_or(u64::MAX) > limit {
            // Not under the first keys only: an operation of a later one would be reported as not
            // existing.
            return Ok((Vec::new(), true));
        }
        let ids = keys.into_iter().map(|key| OperationId::of(key, request_key)).collect();
        Ok((self.book.existing_operations(ids).await?, false))
    }

    /// Wallets, API keys and people of a part of their names.
    async fn matches_of_text(
        &self,
        principal: &Principal,
        term: &str,
        limit: u64,
    ) -> Result<Vec<ResourceMatch>> {
        let own = principal.only_wallet();
        let mut found = self.book.resources_by_text(term, own, limit).await?;
        if own.is_some() && is_of_a_person(term) && principal.role.may(UseCase::PersonRead) {
            let (filter, page) =
                (PersonFilter::default(), PageRequest::first(Order::Newest, PAGE_MAX));
            let people = self.people(principal, filter, page).await?;
            let sought = normal_form(term).to_lowercase();
            let is_sought = |email: &str| email.to_lowercase().contains(&sought);
            let people = people.rows.into_iter().map(|record| record.person);
            let people =
                people.filter(|it| it.email.as_ref().is_some_and(|it| is_sought(it.as_str())));
            found.extend(
                people.map(|it| ResourceMatch { thing: ResourceId::Person(it.id), wallet: own }),
            );
        }
        Ok(found)
    }
}

/// True for a term that may be a part of an e-mail address: the people of a wallet are read, which is noted, for such
/// a term alone.
fn is_of_a_person(term: &str) -> bool {
    let is_id = || {
        term.starts_with(COMPLETION)
            || OperationId::of_tool_call(term).is_some()
            || IdPrefix::parse(term).is_some()
    };
    term.contains('@') || (term.contains(char::is_alphabetic) && !is_id())
}

/// True for a resource that the principal may read.
fn is_readable(principal: &Principal, found: &ResourceMatch) -> bool {
    let is_reached = match (principal.only_wallet(), found.wallet) {
        (None, _) => true,
        (Some(own), Some(of)) => own == of,
        (Some(_), None) => false,
    };
    is_reached && found.thing.read_use_case().is_some_and(|it| principal.role.may(it))
}
