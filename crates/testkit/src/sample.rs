//! Values that are valid as they are, for tests that vary one of them. Fixed ids belong to one operation that
//! many tests are about; `fresh_…` ids never repeat, on any machine.
//!
//! Numbers are chosen to be read: a hold of 100, a micro a token, a lease of 15 s from [`NOW`]. A builder
//! varies one field of a claim by its name, so that a test names its subject and no more. Bindings are hashes
//! of a text and its terms: equal texts are one request, as in production, without a request to normalize.
//!
//! # Panics
//!
//! A function panics on an argument that is not valid: a name, a number of tokens or a price beyond its bounds.
//!
//! ```
//! use holdfast_testkit::sample;
//!
//! let first = sample::claim().hold(250).build();
//! assert_eq!((first.hold.get(), first.tokens), (250, 100));
//! // Equal texts are one request; another text is another one.
//! assert_eq!(sample::claim().request("hello").build().binding, first.binding);
//! assert_ne!(sample::claim().request("hi").build().binding, first.binding);
//! ```
#![expect(
    clippy::unwrap_used,
    reason = "fixed texts and tests' own numbers: a bad one is the test's bug"
)]

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::conduct::{ClaimOffer, Ending, Rebinding};
use holdfast_domain::limits::Limits;
use holdfast_domain::model::{FingerprintTerms, ModelAlias, PublicModelId};
use holdfast_domain::operation::{
    Attempt, Binding, Claim, Lease, Node, Owner, ProviderRefusal, SealedResult, Transition,
};
use holdfast_domain::ports::{Call, ResponseMode, UnreadableReason};
use holdfast_domain::price::{PriceVersion, PriceVersionId, Tariff, Tier, UnitPrices};
use holdfast_domain::request::{Content, Message, Request, Role};
use holdfast_domain::secret::{BodyDigest, Fingerprint, ServerSecret, ServerSecretId};
use holdfast_domain::state::ProviderStates;
use holdfast_domain::usage::{MeterKind, MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{
    ApiKeyId, ClaimId, CredentialId, Currency, Event, Incarnation, Micros, NodeName, RequestKey,
    Snapshot, Timestamp, WalletId, decide,
};
use uuid::{Builder, Uuid};

/// 2026-11-20T12:00:00Z: start of the clock of a memory journal.
pub const NOW: Timestamp = Timestamp::from_micros(1_795_176_000_000_000);
/// Length of leases here.
pub const LEASE: Duration = Duration::from_secs(15);
/// Span from admission to the deadline here.
pub const TIME: Duration = Duration::from_secs(660);
/// The API key of every claim, unless the test sets another.
pub const API_KEY: ApiKeyId = ApiKeyId::from_u128(0xa);
/// The wallet that pays, unless the claim names another.
pub const WALLET: WalletId = WalletId::from_u128(0xb);
/// The claim id of a claim that does not set another.
pub const CLAIM: ClaimId = ClaimId::from_u128(0xc);

/// A claim that is valid as it stands.
#[must_use]
pub fn claim() -> ClaimBuilder {
    ClaimBuilder {
        claim: Claim {
            api_key: API_KEY,
            request_key: request_key(1),
            wallet: WALLET,
            binding: binding("hello", terms()),
            model: model(),
            alias: None,
            price: price(),
            hold: Micros::new(100),
            tokens: 100,
            limits: Limits::default(),
            limits_revision: None,
            unknown_until: None,
            time: TIME,
            owner: Owner { claim: CLAIM, node: node("a") },
            lease: Lease { node: node("a"), ends_at: NOW.after(LEASE) },
        },
    }
}

/// Builder that varies a claim.
#[derive(Debug, Clone)]
pub struct ClaimBuilder {
    claim: Claim,
}

impl ClaimBuilder {
    /// Starts from this claim.
    #[must_use]
    pub const fn from_claim(claim: Claim) -> Self {
        Self { claim }
    }

    /// Another API key.
    #[must_use]
    pub fn api_key(mut self, api_key: ApiKeyId) -> Self {
        self.claim.api_key = api_key;
        self
    }

    /// Another wallet.
    #[must_use]
    pub fn wallet(mut self, wallet: WalletId) -> Self {
        self.claim.wallet = wallet;
        self
    }

    /// Limits that were read at this revision.
    #[must_use]
    pub const fn limits_revision(mut self, revision: u64) -> Self {
        self.claim.limits_revision = Some(revision);
        self
    }

    /// End of the window of a restore.
    #[must_use]
    pub const fn unknown_until(mut self, until: Option<Timestamp>) -> Self {
        self.claim.unknown_until = until;
        self
    }

    /// Another request key.
    #[must_use]
    pub fn request_key(mut self, request_key: RequestKey) -> Self {
        self.claim.request_key = request_key;
        self
    }

    /// Another request, distinguished only by its text.
    #[must_use]
    pub fn request(mut self, text: &str) -> Self {
        self.claim.binding = binding(text, self.claim.binding.terms);
        self
    }

    /// Another binding.
    #[must_use]
    pub fn binding(mut self, binding: Binding) -> Self {
        self.claim.binding = binding;
        self
    }

    /// Other prices.
    #[must_use]
    pub fn price(mut self, price: PriceVersion) -> Self {
        self.claim.price = price;
        self
    }

    /// An alias that the request names its model by.
    #[must_use]
    pub fn alias(mut self, alias: &str) -> Self {
        self.claim.alias = ModelAlias::try_from(alias).ok();
        self
    }

    /// Another hold, in micros.
    #[must_use]
    pub fn hold(mut self, micros: i64) -> Self {
        self.claim.hold = Micros::new(micros);
        self
    }

    /// Another bound on its tokens.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.claim.tokens = tokens;
        self
    }

    /// Other limits of the API key.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.claim.limits = limits;
        self
    }

    /// Another time from admission to the deadline.
    #[must_use]
    pub fn time(mut self, time: Duration) -> Self {
        self.claim.time = time;
        self
    }

    /// Another task.
    #[must_use]
    pub fn claim_id(mut self, claim: ClaimId) -> Self {
        self.claim.owner.claim = claim;
        self
    }

    /// Another process, with its own lease.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        self.claim.owner.node = lease.node.clone();
        self.claim.lease = lease;
        self
    }

    /// The claim.
    #[must_use]
    pub fn build(self) -> Claim {
        self.claim
    }
}

/// An order for a claim whose lease is live now, which compares with no older terms.
#[must_use]
pub fn order(claim: &Claim) -> ClaimOffer<'_> {
    // The last microsecond in which the lease is live.
    let now = Timestamp::from_micros(claim.lease.ends_at.as_micros().saturating_sub(1));
    ClaimOffer { claim, now, rebind: &|_terms| Rebinding::Lost }
}

/// T1 of this claim, judged over no row.
#[must_use]
pub fn admission(claim: &Claim) -> Arc<Transition> {
    let snapshot = Snapshot::vacant(order(claim).now);
    let admitted = decide(&snapshot, Event::Claim(Box::new(claim.clone())));
    Arc::new(admitted.unwrap())
}

/// The `n`th of many request keys.
#[must_use]
pub fn request_key(n: u64) -> RequestKey {
    let mut bytes = [0; 16];
    for (byte, of_n) in bytes.iter_mut().skip(8).zip(n.to_be_bytes()) {
        *byte = of_n;
    }
    // Version and variant take the two highest bits of `n`: all smaller ones stay apart.
    RequestKey::from_bytes(Builder::from_random_bytes(bytes).into_uuid().into_bytes()).unwrap()
}

/// A request key that was never used.
#[must_use]
pub fn fresh_request_key() -> RequestKey {
    RequestKey::from_bytes(Uuid::new_v4().into_bytes()).unwrap()
}

/// An id that was never used.
#[must_use]
pub fn fresh<Id: From<Uuid>>() -> Id {
    Id::from(Uuid::new_v4())
}

/// A process of this name.
#[must_use]
pub fn node(name: &str) -> Node {
    // One incarnation for all: a test of a successor under one name has to make another.
    Node { name: NodeName::try_from(name).unwrap(), incarnation: Incarnation::from_u128(0xd) }
}

/// The model that everything here is about.
#[must_use]
pub fn model() -> PublicModelId {
    PublicModelId::try_from("holdfast/sample").unwrap()
}

/// Terms that requests are bound under here.
#[must_use]
pub const fn terms() -> FingerprintTerms {
    FingerprintTerms {
        server_secret: ServerSecretId::from_bytes([1; 8]),
        fingerprint_version: 1,
        contract: 1,
    }
}

/// Binding of a request of this text under these terms. The body digest depends on the server
/// secret and the text, the fingerprint on all terms.
#[must_use]
pub fn binding(text: &str, terms: FingerprintTerms) -> Binding {
    let digest = |bytes: &[u8]| {
        let secret = ServerSecret::new(&[7; 16]).unwrap();
        secret.body_digest_key(API_KEY).digest(bytes).to_bytes()
    };
    let secret = terms.server_secret;
    Binding {
        terms,
        fingerprint: Fingerprint::from_bytes(digest(format!("{terms:?} {text}").as_bytes())),
        body_digest: BodyDigest::from_bytes(digest(format!("{secret} {text}").as_bytes())),
    }
}

/// The server secret of everything here.
#[must_use]
pub fn secret() -> ServerSecret {
    ServerSecret::new(b"the secret of these tests").unwrap()
}

/// A request of one turn.
#[must_use]
pub fn request(text: &str) -> Request {
    let content = Some(Content::Text(text.to_owned()));
    Request::new(model(), vec![Message::new(Role::User, content)])
}

/// A call to a provider, for a request of one turn.
#[must_use]
pub fn call(text: &str) -> Call {
    Call {
        request: Arc::new(request(text)),
        model: "sample-upstream".into(),
        max_output_tokens: 100,
        context_tokens: 8_000,
        key: None,
        connect: Duration::from_secs(2),
        response_mode: ResponseMode::Whole,
        states: ProviderStates::new(),
    }
}

/// Price of a micro a token of any kind, and zero for the request.
#[must_use]
pub fn price() -> PriceVersion {
    priced("2026-01-01T00:00:00Z", 1_000_000)
}

/// Price of so many micros for a million tokens of any kind, and zero for the request.
#[must_use]
pub fn priced(effective_from: &str, micros_per_million: u64) -> PriceVersion {
    let rate = |kind: MeterKind| if kind.per_million() { micros_per_million } else { 0 };
    PriceVersion {
        id: PriceVersionId::new(&model(), usd(), effective_from),
        currency: usd(),
        tariff: UnitPrices::from_fn(rate).unwrap().into(),
    }
}

/// Price of [`priced`] for prompts of up to 50 tokens; twice and three times as much above 50 and
/// 500.
#[must_use]
pub fn tiered(effective_from: &str, micros_per_million: u64) -> PriceVersion {
    let flat = |times| priced(effective_from, times * micros_per_million);
    let tier = |above_prompt_tokens, times| Tier {
        above_prompt_tokens,
        rates: *flat(times).tariff.rates(),
    };
    let tiers = vec![tier(50, 2), tier(500, 3)];
    let tariff = Tariff::with_tiers(*flat(1).tariff.rates(), tiers).unwrap();
    PriceVersion { tariff, ..flat(1) }
}

/// The currency of everything here.
#[must_use]
pub fn usd() -> Currency {
    "USD".parse().unwrap()
}

/// Reported meters of so many prompt and completion tokens. If the prompt is even, their cost to the operator
/// is known: a third of a micro a token.
#[must_use]
pub fn metered(input: u64, output: u64) -> MeterReading {
    let meters = Meters::text(input, output).unwrap();
    let cost = i64::try_from((input + output) / 3).unwrap();
    let provider_cost = input.is_multiple_of(2).then_some(Micros::new(cost));
    MeterReading {
        meters,
        source: MetersSource::Reported,
        reasons: UsageReasons::NONE,
        provider_cost,
    }
}

/// A sealed result, distinguished by its bytes.
#[must_use]
pub fn result(sealed: &str) -> SealedResult {
    SealedResult {
        credential: CredentialId::from_u128(0xe),
        format: 1,
        nonce: [9; 12],
        sealed: sealed.as_bytes().into(),
        withheld: 0,
    }
}

/// Attempts: a single one, which finished.
#[must_use]
pub fn attempts() -> Arc<[Attempt]> {
    Arc::new([attempt("finished", None)])
}

/// Attempts: a single one, whose answer could not be read.
#[must_use]
pub fn unread_attempts() -> Arc<[Attempt]> {
    let unread = UnreadableReason::Content("choices[].message.content");
    Arc::new([attempt("unknown_unreadable", Some(unread))])
}

fn attempt(class: &'static str, unread: Option<UnreadableReason>) -> Attempt {
    Attempt {
        route: "sim/sample".into(),
        class: class.into(),
        latency: Duration::from_millis(12),
        may_be_billed: true,
        reason: unread.map(|why| why.to_string().into()),
    }
}

/// The ending of a run that metered this much.
#[must_use]
pub fn finished(input: u64, output: u64) -> Ending {
    Ending::Finished { metered: metered(input, output), result: result("answer") }
}

/// The ending of a run that the provider refused.
#[must_use]
pub fn refused() -> Ending {
    Ending::Refused { refusal: ProviderRefusal::Request, result: result("refusal") }
}
