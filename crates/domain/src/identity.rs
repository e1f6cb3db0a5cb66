//! Identifiers, and the derived ones among them that make an effect happen at most once.
//!
//! A derived id is a function of what it stands for, so two processes that never met agree on it:
//!
//! ```text
//! operation   D("operation", API key, request key)     one key, one operation
//! hold        D("hold", operation, generation)         one for each generation
//! usage       D("usage", operation)                    no generation: one usage record for ever
//! settlement  D("settlement", operation)               no generation: one charge for ever
//! event       D("event", kind, its subject)            reported twice, it is one event
//! ```
//!
//! `D` is BLAKE3 `derive_key` under a hard-coded context over fixed-width parts, its first 128 bits
//! a UUIDv8. The contexts never change: another one would make every stored key a new operation. An
//! id is inserted in the transaction of its effect, and a repeated one stops the effect.
//!
//! Not here: secrets and the keys derived from them ([`crate::secret`]).

mod address;

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use blake3::Hasher;
use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};
use uuid::{Builder, Uuid, Variant, Version};

pub use self::address::{BadNodeAddress, NodeAddress};
use crate::base62::{self, LEN_OF_128};
use crate::debug_as;

/// Writes an identifier that is 128 bits and prints as a hyphenated UUID.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// The identifier with exactly these bits.
            #[must_use]
            pub const fn from_u128(bits: u128) -> Self {
                Self(Uuid::from_u128(bits))
            }

            /// The identifier with exactly these bytes, most significant first.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The bytes, most significant first.
            #[must_use]
            pub const fn to_bytes(self) -> [u8; 16] {
                self.0.into_bytes()
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Uuid::try_parse(text).map(Self).map_err(BadId)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    )+};
}

ids! {
    /// An API key: the scope of request keys, limits and fingerprints. It outlives its credentials.
    ApiKeyId,
    /// Credential of an API key; public, and part of the text that its bearer holds.
    CredentialId,
    /// A prepaid balance in one currency.
    WalletId,
    /// A deposit, refund or adjustment.
    PostingId,
    /// The one logical unit of work that an API key and a request key stand for.
    OperationId,
    /// Request of a caller, answered or refused: the value of `x-request-id`.
    RequestId,
    /// The reservation of one generation of an operation.
    HoldId,
    /// The billing fact of an operation: at most one for ever.
    UsageId,
    /// The settlement of an operation: at most one for ever.
    SettlementId,
    /// 128 random bits made by the task that offers a claim; the task whose bits are on the row
    /// owns it.
    ClaimId,
    /// 128 random bits made by a process at its start, never reused.
    Incarnation,
    /// A job of an operator.
    JobId,
    /// 128 random bits, made anew for each relay by each of its two ends.
    RelayNonce,
    /// An admin key: an actor of administration. It outlives its credentials.
    AdminKeyId,
    /// A person: an actor of administration. It outlives sessions.
    PersonId,
    /// A session of a person: what it is listed and ended by, and no secret.
    SessionId,
    /// A one-time link of a person.
    LinkId,
    /// A mark of a browser that a person has signed in from: an identity in lists, and no secret.
    BrowserMarkId,
    /// Request key of a command of administration, chosen by its actor: a UUID of any version.
    CommandKey,
    /// A webhook: an endpoint, the kinds of events that it is sent, and a secret.
    WebhookId,
    /// An event's identity, by which receivers of webhooks recognise repeated deliveries.
    EventId,
}

/// A text that is not a UUID.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID")]
pub struct BadId(#[source] uuid::Error);

/// The caller's `Idempotency-Key`: a UUIDv4 in its canonical spelling and no other.
///
/// ```
/// use holdfast_domain::{ApiKeyId, OperationId, RequestKey};
///
/// let key: RequestKey = "8f14e45f-ceea-467f-ab3d-1c3f0f8c6f4d".parse()?;
/// assert!("8F14E45F-CEEA-467F-AB3D-1C3F0F8C6F4D".parse::<RequestKey>().is_err());
///
/// // An operation is what the key stands for under one API key: everybody computes the same id.
/// let (ours, theirs) = (ApiKeyId::from_u128(1), ApiKeyId::from_u128(2));
/// assert_eq!(OperationId::of(ours, key), OperationId::of(ours, key));
/// assert_ne!(OperationId::of(ours, key), OperationId::of(theirs, key));
/// # Ok::<(), holdfast_domain::BadRequestKey>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(Uuid);

impl RequestKey {
    /// The bytes, most significant first.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.into_bytes()
    }

    /// The UUIDv4 of these bytes, whose bits of version and variant are overwritten.
    #[must_use]
    pub const fn of_random(bytes: [u8; 16]) -> Self {
        Self(Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Reads what [`RequestKey::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`BadRequestKey`] for anything but a UUIDv4.
    pub fn from_bytes(bytes: [u8; 16]) -> Result<Self, BadRequestKey> {
        let id = Uuid::from_bytes(bytes);
        if is_v4(&id) { Ok(Self(id)) } else { Err(BadRequestKey) }
    }
}

impl FromStr for RequestKey {
    type Err = BadRequestKey;

    /// Reads one spelling only: two spellings of one key would be two operations to another system's store.
    fn from_str(text: &str) -> Result<Self, BadRequestKey> {
        let id = Uuid::try_parse(text).map_err(|_bad| BadRequestKey)?;
        let mut spelling = [0; 36];
        let canonical: &str = id.as_hyphenated().encode_lower(&mut spelling);
        if is_v4(&id) && canonical == text { Ok(Self(id)) } else { Err(BadRequestKey) }
    }
}

fn is_v4(id: &Uuid) -> bool {
    id.get_version() == Some(Version::Random) && id.get_variant() == Variant::RFC4122
}

impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_hyphenated().fmt(f)
    }
}

debug_as!(RequestKey as it: "RequestKey({it})");

/// A text that is not a canonical UUIDv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a canonical UUIDv4")]
pub struct BadRequestKey;

/// The configured or made-up name of a process; its row in the store carries the lease.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Arc<str>);

impl NodeName {
    /// The longest name, in bytes.
    pub const LEN_MAX: usize = 64;

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<&str> for NodeName {
    type Error = BadNodeName;

    fn try_from(name: &str) -> Result<Self, BadNodeName> {
        let fits = (1..=Self::LEN_MAX).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b));
        if fits { Ok(Self(name.into())) } else { Err(BadNodeName) }
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node name that is empty, too long or has other characters than letters, digits and `-_.`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a node name: 1 to 64 letters, digits, hyphens, underscores and dots")]
pub struct BadNodeName;

/// `D(noun, parts)`: a UUIDv8 from a hard-coded context and fixed-width parts.
fn derived(context: &'static str, parts: &[&[u8]]) -> Uuid {
    absorbed(&mut Hasher::new_derive_key(context), parts)
}

/// Context key of operations, computed once: half of what it takes to derive an id.
static OPERATION: LazyLock<ContextKey> =
    LazyLock::new(|| hash_derive_key_context("holdfast 2026-11 operation v1"));

fn absorbed(hasher: &mut Hasher, parts: &[&[u8]]) -> Uuid {
    for part in parts {
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    // Six bits become version and variant: 122 of the hash are left.
    Builder::from_custom_bytes(bytes).into_uuid()
}

impl EventId {
    /// The event of this kind with these distinguishing parts.
    pub(crate) fn of(kind: &str, parts: &[&[u8]]) -> Self {
        let mut hasher = Hasher::new_derive_key("holdfast 2026-11 event v1");
        for part in std::iter::once(kind.as_bytes()).chain(parts.iter().copied()) {
            // Parts of any width: with its length before each, two lists are never spelled alike.
            hasher.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hasher.update(part);
        }
        Self(absorbed(&mut hasher, &[]))
    }
}

impl OperationId {
    /// The operation that this request key stands for under this API key.
    #[must_use]
    pub fn of(api_key: ApiKeyId, request_key: RequestKey) -> Self {
        // Sixteen bytes each: parts of a fixed width need no lengths to be told apart.
        let parts = [&api_key.to_bytes()[..], &request_key.to_bytes()[..]];
        Self(absorbed(&mut Hasher::new_from_context_key(&OPERATION), &parts))
    }

    /// The id of the completion that callers see: `chatcmpl_` and 32 hex digits.
    #[must_use]
    pub fn completion_id(self) -> String {
        let mut spelled = Uuid::encode_buffer();
        ["chatcmpl_", self.0.as_simple().encode_lower(&mut spelled)].concat()
    }

    /// The id that callers see of a call of a tool: ours, not the provider's, and the same at every
    /// replay. `at` is its choice and its place among that choice's calls. Servers take at most 40
    /// characters.
    #[must_use]
    pub fn tool_call_id(self, at: [u32; 2]) -> String {
        let [choice, call] = at;
        format!("call_{}_{choice}_{call}", base62::write(&self.to_bytes(), LEN_OF_128))
    }

    /// Reads an id that [`OperationId::tool_call_id`] wrote: its operation and the call's place there. `None`
    /// for any other text.
    #[must_use]
    pub fn of_tool_call(id: &str) -> Option<(Self, [u32; 2])> {
        let (operation, at) = id.strip_prefix("call_")?.split_once('_')?;
        let (choice, call) = at.split_once('_')?;
        // Callers send these back as they like: only the one spelling that was written is read.
        if operation.len() != LEN_OF_128 {
            return None;
        }
        let operation = Self::from_bytes(base62::read(operation)?);
        let at = [choice.parse().ok()?, call.parse().ok()?];
        // Written again and compared: `01` and `+1` are numbers to Rust, and no id of ours.
        (operation.tool_call_id(at) == id).then_some((operation, at))
    }

    /// The hold of one generation.
    #[must_use]
    pub fn hold(self, generation: u32) -> HoldId {
        let parts = [&self.to_bytes()[..], &generation.to_be_bytes()[..]];
        HoldId(derived("holdfast 2026-11 hold v1", &parts))
    }

    /// The usage record: without a generation, so at most one for ever.
    #[must_use]
    pub fn usage(self) -> UsageId {
        UsageId(derived("holdfast 2026-11 usage v1", &[&self.to_bytes()]))
    }

    /// The settlement: without a generation, so at most one charge for ever.
    #[must_use]
    pub fn settlement(self) -> SettlementId {
        SettlementId(derived("holdfast 2026-11 settlement v1", &[&self.to_bytes()]))
    }
}
