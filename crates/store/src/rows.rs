//! Rows and the domain's values: writing and reading, the same for every dialect.
//!
//! Ids are raw bytes, enums their labels, moments and amounts 64-bit integers (microseconds since 1970, micros of a
//! currency). Columns are read by place, in the order of the list that comes with each reader: a column that is
//! added to a list is added to its reader. A value that is not valid there is a [`BadRow`], never a default:
//! another program wrote the row.

mod cell;
mod cells;
pub(crate) mod entity;
pub(crate) mod job;
pub(crate) mod late_cost;
pub(crate) mod person;
mod posting;
pub(crate) mod restore;
mod row;
pub(crate) mod tariff;
pub(crate) mod webhook;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::credential::Credential;
use holdfast_domain::ledger::TransferKind;
use holdfast_domain::limits::{Counter, Reservation, SpendLimit, SpendWindow};
use holdfast_domain::model::{FingerprintTerms, ModelAlias, PublicModelId};
use holdfast_domain::operation::{
    Attempt, Binding, Lease, Node, Operation, Owner, Phase, ProviderRefusal, SealedResult, Version,
};
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::secret::{BodyDigest, Fingerprint, ServerSecretId, Verifier};
use holdfast_domain::usage::{MeterKind, MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, ClaimId, CredentialId, Currency, Incarnation, Micros, NodeName, OperationId,
    RequestKey, Timestamp, WalletId,
};

pub(crate) use self::cell::{Cell, Raw};
pub(crate) use self::cells::{BadRow, Cells};
pub(crate) use self::posting::{POSTING, posting, posting_kind};
pub(crate) use self::row::{Columns, FromCells, Row};

/// The columns that [`price`] reads, of `prices AS p`.
macro_rules! price_columns {
    () => {
        "p.price_version, p.currency, p.input, p.cached_input, p.cache_write, p.audio_input, \
         p.output, p.reasoning, p.audio_output, p.request, p.image, p.tiers"
    };
}

/// The columns that [`price`] reads.
pub(crate) const PRICE: &str = price_columns!();

/// The columns that [`operation`] reads, of `operations AS o` and `prices AS p`.
pub(crate) const OPERATION: &str = concat!(
    "o.id, o.api_key_id, o.request_key, o.wallet_id, o.model, \
    o.server_secret, o.fingerprint_version, o.contract, o.fingerprint, o.body_digest, \
    o.created_at, o.generation, o.hold, o.reserved_counters, o.reserved_tokens, o.claim, o.node, \
    o.incarnation, o.admitted_at, o.deadline, o.phase, o.version, o.cancel_asked, o.attempts, \
    o.input, o.cached_input, o.cache_write, o.audio_input, o.output, o.reasoning, o.audio_output, \
    o.request, o.image, o.meters_source, o.charge, o.shortfall, o.provider_cost, \
    o.usage_reasons, o.refusal, o.finished_at, o.model_alias, ",
    price_columns!()
);

/// Tokens that a counter of tokens counts: those of the prompt and those of the completion.
pub(crate) const COUNTED_TOKENS: &str = "coalesce(o.input + o.cached_input + o.cache_write + o.audio_input \
    + o.output + o.reasoning + o.audio_output, 0)";

/// The columns that [`lease`] reads, of `nodes AS n`.
pub(crate) const LEASE: &str = "n.name, n.incarnation, n.ends_at";

/// The columns that [`result`] reads, of `results AS r`: without the bytes of what is over `$2`.
// Both databases know a length without reading the bytes. PostgreSQL's is of 32 bits, hence the cast.
pub(crate) const RESULT: &str = "r.credential_id, r.format, r.nonce, \
    CASE WHEN length(r.sealed) <= $2 THEN r.sealed END, CAST(length(r.sealed) AS bigint)";

pub(crate) const WHOLE_RESULT: &str =
    "r.credential_id, r.format, r.nonce, r.sealed, CAST(0 AS bigint)";

/// The columns that [`credential`] reads, of `credentials AS c`.
pub(crate) const CREDENTIAL: &str = "c.id, c.api_key_id, c.verifier, c.server_secret, c.ends_at";

/// The columns that [`wallet`] reads, of `wallets AS w`.
pub(crate) const WALLET: &str = "w.id, w.name, w.currency, w.available, w.held, w.suspended_at";

/// Cell of reasons: absent if there are none.
pub(crate) fn reasons_bits(reasons: UsageReasons) -> Option<i64> {
    (!reasons.is_empty()).then(|| i64::from(reasons.bits()))
}

/// The count of a kind, of nine.
fn of_kind(counts: &[u64; MeterKind::COUNT], kind: MeterKind) -> u64 {
    MeterKind::ALL
        .iter()
        .zip(counts)
        .find_map(|(k, count)| (*k == kind).then_some(*count))
        .unwrap_or(0)
}

/// Reads [`OPERATION`].
pub(crate) fn operation(cells: &mut Cells<'_>) -> Result<Operation, BadRow> {
    let id = OperationId::from_bytes(cells.bytes()?);
    let api_key = ApiKeyId::from_bytes(cells.bytes()?);
    let request_key =
        cells.parse(|bytes: Vec<u8>| RequestKey::from_bytes(bytes.try_into().ok()?).ok())?;
    let wallet = WalletId::from_bytes(cells.bytes()?);
    let model = cells.parse(|text: String| PublicModelId::try_from(text.as_str()).ok())?;
    let terms = FingerprintTerms {
        server_secret: ServerSecretId::from_bytes(cells.bytes()?),
        fingerprint_version: cells.small()?,
        contract: cells.small()?,
    };
    let fingerprint = Fingerprint::from_bytes(cells.bytes()?);
    let body_digest = BodyDigest::from_bytes(cells.bytes()?);
    let created_at = cells.timestamp()?;
    let generation = cells.small()?;
    let hold = cells.micros()?;
    let reserved = Reservation::from_stored(cells.small()?, cells.small()?);
    let claim = ClaimId::from_bytes(cells.bytes()?);
    let owner = Owner { claim, node: node(cells)? };
    let admitted_at = cells.timestamp()?;
    let deadline = cells.timestamp()?;
    let phase = cells.text()?;
    let version = Version::new(cells.small()?);
    let cancel_asked = cells.int()? != 0;
    let attempts = cells.parse(|text: String| attempts(&text))?;
    let ended = EndColumns::read(cells)?;
    let alias = cells.parse(|text: Option<String>| {
        text.map(|text| ModelAlias::try_from(text.as_str())).transpose().ok()
    })?;
    let price = price(cells)?;
    let at = cells.next;
    let phase = ended.phase(&phase, &price).ok_or(BadRow::Value(at))?;
    Ok(Operation {
        id,
        api_key,
        request_key,
        wallet,
        binding: Binding { terms, fingerprint, body_digest },
        model,
        alias,
        price,
        generation,
        hold,
        reserved,
        owner,
        created_at,
        admitted_at,
        deadline,
        cancel_asked,
        attempts,
        phase,
        version,
    })
}

/// The columns that only some phases have.
struct EndColumns {
    metered: Option<MeterReading>,
    charge: Option<Micros>,
    shortfall: Option<Micros>,
    refusal: Option<ProviderRefusal>,
    finished_at: Option<Timestamp>,
}

impl EndColumns {
    fn read(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        let counts = cells.counts()?;
        let source = cells.parse(|label: Option<String>| match label.as_deref() {
            Some("reported") => Some(Some(MetersSource::Reported)),
            Some("estimated") => Some(Some(MetersSource::Estimated)),
            None => Some(None),
            Some(_) => None,
        })?;
        let meters = counts.and_then(|counts| Meters::from_fn(|kind| of_kind(&counts, kind)).ok());
        let charge = cells.opt_int()?.map(Micros::new);
        let shortfall = cells.opt_int()?.map(Micros::new);
        let provider_cost = cells.opt_int()?.map(Micros::new);
        let reasons = cells.parse(|bits: Option<i64>| match bits {
            // Bits beyond those of this release are of a later one.
            Some(bits) => {
                u16::try_from(bits & i64::from(u16::MAX)).ok().map(UsageReasons::from_bits)
            }
            None => Some(UsageReasons::NONE),
        })?;
        let refusal = cells.parse(|label: Option<String>| match label.as_deref() {
            Some("request") => Some(Some(ProviderRefusal::Request)),
            Some("context_length") => Some(Some(ProviderRefusal::ContextLength)),
            None => Some(None),
            Some(_) => None,
        })?;
        let metered = |(meters, source)| MeterReading { meters, source, reasons, provider_cost };
        // The table allows all of these or none. If a phase lacks a required one, the row is bad.
        let metered = meters.zip(source).map(metered);
        Ok(Self { metered, charge, shortfall, refusal, finished_at: cells.opt_timestamp()? })
    }

    fn phase(&self, label: &str, price: &PriceVersion) -> Option<Phase> {
        let usage = || {
            Some(UsageRecord {
                metered: self.metered?,
                charge: self.charge?,
                shortfall: self.shortfall?,
                price_version: price.id.clone(),
            })
        };
        Some(match label {
            "leased" => Phase::Leased,
            "recorded" => Phase::Recorded(usage()?),
            "open" => Phase::Open,
            "completed" => Phase::Completed { usage: usage()?, finished_at: self.finished_at? },
            "refused" => Phase::Refused { refusal: self.refusal?, finished_at: self.finished_at? },
            "abandoned" => Phase::Abandoned { finished_at: self.finished_at? },
            _ => return None,
        })
    }
}

pub(crate) fn node(cells: &mut Cells<'_>) -> Result<Node, BadRow> {
    let name = cells.parse(|text: String| NodeName::try_from(text.as_str()).ok())?;
    Ok(Node { name, incarnation: Incarnation::from_bytes(cells.bytes()?) })
}

pub(crate) fn currency(cells: &mut Cells<'_>) -> Result<Currency, BadRow> {
    cells.parse(|text: String| text.parse().ok())
}

/// Reads a price version: its name, its currency, its rates and its tiers.
pub(crate) fn price(cells: &mut Cells<'_>) -> Result<PriceVersion, BadRow> {
    let id = PriceVersionId::from_stored(&cells.text()?);
    let currency = currency(cells)?;
    Ok(PriceVersion { id, currency, tariff: tariff::read(cells)? })
}

/// Reads [`LEASE`] of an outer join.
pub(crate) fn lease(cells: &mut Cells<'_>) -> Result<Option<Lease>, BadRow> {
    let name = cells.opt_text()?;
    let incarnation = cells.opt_bytes()?;
    let ends_at = cells.opt_timestamp()?;
    let Some(name) = name else { return Ok(None) };
    let at = cells.next;
    let lease = || {
        let name = NodeName::try_from(name.as_str()).ok()?;
        let incarnation = Incarnation::from_bytes(incarnation?);
        Some(Lease { node: Node { name, incarnation }, ends_at: ends_at? })
    };
    lease().map(Some).ok_or(BadRow::Value(at))
}

/// Reads [`RESULT`] of an outer join.
pub(crate) fn result(cells: &mut Cells<'_>) -> Result<Option<SealedResult>, BadRow> {
    // All five are read, also if the join found none: the columns after them are found by their places.
    let credential = cells.opt_bytes()?.map(CredentialId::from_bytes);
    let format = cells.opt_int()?;
    let nonce = cells.opt_bytes()?;
    let (sealed, length): (Option<Vec<u8>>, _) = (cells.raw()?, cells.opt_int()?);
    let Some(credential) = credential else { return Ok(None) };
    let at = cells.next;
    let result = || {
        let format = u8::try_from(format?).ok()?;
        // A result of no bytes is still a result: missing bytes, not empty ones, mean that it was too large.
        let withheld = if sealed.is_none() { usize::try_from(length?).ok()? } else { 0 };
        let sealed = sealed.unwrap_or_default().into();
        Some(SealedResult { credential, format, nonce: nonce?, sealed, withheld })
    };
    result().map(Some).ok_or(BadRow::Value(at))
}

/// Reads [`WALLET`].
pub(crate) fn wallet(cells: &mut Cells<'_>) -> Result<Wallet, BadRow> {
    Ok(Wallet {
        id: WalletId::from_bytes(cells.bytes()?),
        name: cells.text()?,
        currency: currency(cells)?,
        available: cells.micros()?,
        held: cells.micros()?,
        suspended_at: cells.opt_timestamp()?,
    })
}

/// Bound on spend of its two columns.
pub(crate) fn spend_limit(
    micros: Option<Micros>,
    window: Option<SpendWindow>,
) -> Option<SpendLimit> {
    micros.zip(window).map(|(micros, window)| SpendLimit { micros, window })
}

/// Reads [`CREDENTIAL`].
pub(crate) fn credential(cells: &mut Cells<'_>) -> Result<Credential, BadRow> {
    Ok(Credential {
        id: CredentialId::from_bytes(cells.bytes()?),
        api_key: ApiKeyId::from_bytes(cells.bytes()?),
        verifier: Verifier::from_bytes(cells.bytes()?),
        server_secret: ServerSecretId::from_bytes(cells.bytes()?),
        ends_at: cells.opt_timestamp()?,
    })
}

/// Counts beyond the signed range are bounds that are never reached.
pub(crate) fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The number of a counter in rows.
pub(crate) fn counter_code(counter: Counter) -> i64 {
    counter.index().into()
}

/// Reads what [`counter_code`] wrote.
pub(crate) fn counter(code: i64) -> Option<Counter> {
    Counter::ALL.into_iter().find(|counter| counter_code(*counter) == code)
}

/// The number of a transfer in its operation: with the operation it is the transfer's permanent id.
pub(crate) fn leg(generation: u32, kind: TransferKind) -> i64 {
    let kind = match kind {
        TransferKind::Hold => 0,
        TransferKind::Settle => 1,
        TransferKind::Rest => 2,
        TransferKind::Release => 3,
        TransferKind::Lapse => 4,
    };
    i64::from(generation) * 8 + kind
}

/// Reads what [`leg`] wrote.
pub(crate) fn transfer(leg: i64) -> Option<(u32, TransferKind)> {
    let kind = match leg.rem_euclid(8) {
        0 => TransferKind::Hold,
        1 => TransferKind::Settle,
        2 => TransferKind::Rest,
        3 => TransferKind::Release,
        4 => TransferKind::Lapse,
        _ => return None,
    };
    Some((u32::try_from(leg.div_euclid(8)).ok()?, kind))
}

/// Between the class of an attempt and its reason: no class has it.
const REASON: &str = ": ";

/// Attempts as a row holds them: `[[route, class, nanoseconds, may be billed]]`; a class may have a
/// reason.
pub(crate) fn attempts_text(attempts: &[Attempt]) -> String {
    fn row(attempt: &Attempt) -> (&str, Cow<'_, str>, u64, bool) {
        let latency = u64::try_from(attempt.latency.as_nanos()).unwrap_or(u64::MAX);
        let class = match &attempt.reason {
            None => Cow::Borrowed(&*attempt.class),
            Some(reason) => Cow::Owned([&attempt.class, REASON, reason].concat()),
        };
        (&attempt.route, class, latency, attempt.may_be_billed)
    }
    let rows: Vec<_> = attempts.iter().map(row).collect();
    // Texts, integers and booleans always have a spelling.
    serde_json::to_string(&rows).unwrap_or_else(|_impossible| "[]".to_owned())
}

/// Reads what [`attempts_text`] wrote.
fn attempts(text: &str) -> Option<Arc<[Attempt]>> {
    let rows: Vec<(Box<str>, String, u64, bool)> = serde_json::from_str(text).ok()?;
    let attempt = |(route, text, latency, may_be_billed): (Box<str>, String, _, _)| {
        let (class, reason) = text.split_once(REASON).unzip();
        let (class, reason) = (class.unwrap_or(&text), reason.map(|it| Cow::Owned(it.to_owned())));
        let (route, class) = (Arc::from(route), Cow::Owned(class.to_owned()));
        Attempt { route, class, latency: Duration::from_nanos(latency), may_be_billed, reason }
    };
    Some(rows.into_iter().map(attempt).collect())
}

/// Condition: the running operation `o` may be due at this moment, by the row `n` of its node.
pub(crate) fn is_due(now: &str) -> String {
    format!(
        "(o.phase = 'recorded' OR o.deadline < {now} OR n.name IS NULL
          OR n.incarnation <> o.incarnation OR n.ends_at <= {now})"
    )
}
