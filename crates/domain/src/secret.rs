//! Keys derived from secrets, each for one use. No type in here prints a secret.
//!
//! | key or proof | derived from | so that |
//! |---|---|---|
//! | verifier | server secret, credential secret | a stolen database confirms no credential |
//! | admin verifier | the same, under a noun of its own | no API key is an admin key |
//! | trail key | server secret | a stolen database writes no row of the audit log |
//! | fingerprint, digest, pseudonym key | server secret, API key | rotation changes none of them |
//! | webhook key | server secret, webhook, generation | a stolen database signs no delivery |
//! | receipt key | server secret | all nodes sign as one, and a stolen database signs no receipt |
//! | device key | server secret | an attacker cannot forge the mark of a browser that signed in before |
//! | settings key | server secret | a stolen database confirms no guessed setting |
//! | cursor key | server secret | a cursor of a list shows no number of a row, and cannot be forged |
//! | upstream key | server secret, operation, generation, route | a provider that keeps keys runs a route once |
//! | result key | credential secret, operation | database and configuration open no result |
//! | relay proof, relay key | result key, claim, nonces | two nodes trust each other for one run |
//!
//! `K(noun, parts)` is BLAKE3 `derive_key` under a hard-coded context over parts that each carry
//! their length, so that no two lists of parts feed the same bytes. The contexts never change:
//! another one would make stored verifiers and results unreadable.

mod relay;
mod token;

use std::fmt;
use std::sync::LazyLock;

use blake3::Hasher;
use blake3::hazmat::{ContextKey, HasherExt, hash_derive_key_context};

pub use self::relay::{BadRelayProof, RelayKey, RelayProof};
pub use self::token::{BrowserToken, LinkToken, SessionToken, TokenHash};
use crate::debug_as;
use crate::private::unprinted;
use crate::{ApiKeyId, OperationId, RequestKey, WebhookId, base62};

pub(crate) fn derived(context: &'static str, parts: &[&[u8]]) -> [u8; 32] {
    absorbed(&mut Hasher::new_derive_key(context), parts)
}

/// Context key of result keys, computed once: each request derives one.
static RESULT: LazyLock<ContextKey> =
    LazyLock::new(|| hash_derive_key_context("holdfast 2026-11 result v1"));

fn absorbed(hasher: &mut Hasher, parts: &[&[u8]]) -> [u8; 32] {
    for part in parts {
        // The length first: ("ab", "c") and ("a", "bc") are two lists.
        let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
        hasher.update(&length.to_be_bytes());
        hasher.update(part);
    }
    *hasher.finalize().as_bytes()
}

/// Server secret: one of the operator's, of at least [`ServerSecret::LEN_MIN`] bytes.
///
/// ```
/// use holdfast_domain::{ApiKeyId, secret::ServerSecret};
///
/// let secret = ServerSecret::new(b"at least sixteen bytes").unwrap();
/// let hash = |api_key, request: &[u8]| secret.fingerprint_key(api_key).digest(request);
///
/// let (ours, theirs) = (ApiKeyId::from_u128(1), ApiKeyId::from_u128(2));
/// assert_eq!(hash(ours, b"cat.png"), hash(ours, b"cat.png"));
/// assert_ne!(hash(ours, b"cat.png"), hash(theirs, b"cat.png"));
/// ```
///
/// Verifiers, fingerprints and body digests depend on it, so that a
/// stolen database alone confirms no guessed prompt and no guessed credential.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerSecret {
    bytes: Box<[u8]>,
    id: ServerSecretId,
}

impl ServerSecret {
    /// The fewest bytes that a server secret may have.
    pub const LEN_MIN: usize = 16;

    /// Takes the secret.
    ///
    /// # Errors
    ///
    /// [`SecretTooShort`]: a short one could be guessed offline, with one verifier and its credential.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretTooShort> {
        if bytes.len() < Self::LEN_MIN {
            return Err(SecretTooShort);
        }
        // A hash under a context of its own: rows name the secret by it, and it gives nothing away.
        let [a, b, c, d, e, f, g, h, ..] =
            derived("holdfast 2026-11 server secret id v1", &[bytes]);
        Ok(Self { bytes: bytes.into(), id: ServerSecretId([a, b, c, d, e, f, g, h]) })
    }

    /// Names the secret without revealing it: rows remember by this which secret they were made with.
    #[must_use]
    pub const fn id(&self) -> ServerSecretId {
        self.id
    }

    /// Verifier that is stored instead of a credential's secret.
    #[must_use]
    pub fn verifier(&self, secret: &CredentialSecret) -> Verifier {
        // With the server secret: whoever copies the table can try no credential against it.
        Verifier(blake3::Hash::from_bytes(derived(
            "holdfast 2026-11 verifier v1",
            &[&self.bytes, &secret.0],
        )))
    }

    /// Verifier that is stored instead of an admin credential's secret. Its context is its own: no credential
    /// of an API key is one of an admin key, even if its row is copied to the other table.
    #[must_use]
    pub fn admin_verifier(&self, secret: &CredentialSecret) -> Verifier {
        let parts = [&self.bytes[..], &secret.0[..]];
        Verifier(blake3::Hash::from_bytes(derived("holdfast 2026-11 admin verifier v1", &parts)))
    }

    /// The key under which rows of the trail are chained.
    #[must_use]
    pub fn trail_key(&self) -> TrailKey {
        TrailKey(derived("holdfast 2026-11 audit v1", &[&self.bytes]))
    }

    /// The key under which requests of an API key are fingerprinted. It depends on the API key, not
    /// on a credential: rotation changes no fingerprint.
    #[must_use]
    pub fn fingerprint_key(&self, api_key: ApiKeyId) -> FingerprintKey {
        let parts = [&self.bytes[..], &api_key.to_bytes()[..]];
        FingerprintKey(derived("holdfast 2026-11 fingerprint v1", &parts))
    }

    /// The key under which the raw bytes of request bodies are digested.
    #[must_use]
    pub fn body_digest_key(&self, api_key: ApiKeyId) -> BodyDigestKey {
        let parts = [&self.bytes[..], &api_key.to_bytes()[..]];
        BodyDigestKey(derived("holdfast 2026-11 body digest v1", &parts))
    }

    /// The key under which an API key's end users are named to providers.
    #[must_use]
    pub fn pseudonym_key(&self, api_key: ApiKeyId) -> PseudonymKey {
        let parts = [&self.bytes[..], &api_key.to_bytes()[..]];
        PseudonymKey(derived("holdfast 2026-11 pseudonym v1", &parts))
    }

    /// The key that signs deliveries of a webhook. Another generation is another key: that is how the secret of
    /// a webhook is rotated, and no part of it is stored.
    #[must_use]
    pub fn webhook_key(&self, webhook: WebhookId, generation: u32) -> WebhookKey {
        let parts = [&self.bytes[..], &webhook.to_bytes()[..], &generation.to_be_bytes()[..]];
        WebhookKey(derived("holdfast 2026-11 webhook v1", &parts))
    }

    /// The key that signs receipts and roots of the ledger: the seed of an Ed25519 key. Another server secret is
    /// another key, so it rotates with the secret.
    #[must_use]
    pub fn receipt_key(&self) -> ReceiptKey {
        ReceiptKey(derived("holdfast 2026-11 receipt v1", &[&self.bytes]))
    }

    /// The key that seals the cursors of lists.
    #[must_use]
    pub fn cursor_key(&self) -> CursorKey {
        CursorKey(derived("holdfast 2026-11 cursor v1", &[&self.bytes]))
    }

    /// The request key of one route of one generation, for a provider that keeps keys itself. Each
    /// generation has its own, because only what is proven not to have run is run again; and so has
    /// each route, because another model is another request.
    #[must_use]
    pub fn upstream_key(
        &self,
        operation: OperationId,
        generation: u32,
        (provider, model): (&str, &str),
    ) -> RequestKey {
        let parts = [
            &self.bytes[..],
            &operation.to_bytes()[..],
            &generation.to_be_bytes()[..],
            provider.as_bytes(),
            model.as_bytes(),
        ];
        // Half of the hash: a UUID has no room for more, and no two keys meet by chance.
        let [half @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
            derived("holdfast 2026-11 upstream key v1", &parts);
        RequestKey::of_random(half)
    }

    /// The key under which nodes digest their settings. Nodes that write under different secrets have different
    /// digests, even if their files are equal otherwise.
    #[must_use]
    pub fn settings_key(&self) -> SettingsKey {
        SettingsKey(derived("holdfast 2026-11 settings v1", &[&self.bytes]))
    }
}

debug_as!(ServerSecret as it: "ServerSecret({})", it.id());

/// A server secret of fewer than [`ServerSecret::LEN_MIN`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server secret has at least {} bytes", ServerSecret::LEN_MIN)]
pub struct SecretTooShort;

/// Id of the server secret that a row was made with. Reveals no part of the secret.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerSecretId([u8; 8]);

impl ServerSecretId {
    /// The id with exactly these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 8] {
        self.0
    }
}

impl fmt::Display for ServerSecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

debug_as!(ServerSecretId as it: "ServerSecretId({it})");

/// The secret half of a credential: 256 random bits that only its bearer has. Comparison takes the same time
/// for all values.
#[derive(Clone, Eq)]
pub struct CredentialSecret([u8; 32]);

impl PartialEq for CredentialSecret {
    fn eq(&self, other: &Self) -> bool {
        // `Hash` compares in constant time; an array stops at the first byte that differs.
        blake3::Hash::from_bytes(self.0) == blake3::Hash::from_bytes(other.0)
    }
}

impl CredentialSecret {
    /// Takes the bits.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key that seals and opens the results of one operation. It depends on this secret alone:
    /// the database and the server's configuration together do not open a result.
    #[must_use]
    pub fn result_key(&self, operation: OperationId) -> ResultKey {
        let parts = [&self.0[..], &operation.to_bytes()[..]];
        ResultKey(absorbed(&mut Hasher::new_from_context_key(&RESULT), &parts))
    }
}

/// Verifier that a credential is checked against. Comparison takes the same time for all values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Verifier(blake3::Hash);

impl Verifier {
    /// Reads what [`Verifier::to_bytes`] wrote.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(blake3::Hash::from_bytes(bytes))
    }

    /// The bytes that are stored.
    #[must_use]
    pub const fn to_bytes(&self) -> [u8; 32] {
        *self.0.as_bytes()
    }
}

unprinted! { CredentialSecret, Verifier }

/// Writes a derived key that never prints.
macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone)]
        pub struct $name([u8; 32]);

        impl $name {
            /// The key's bytes, for the cipher or the hash that uses it.
            #[must_use]
            pub const fn expose(&self) -> &[u8; 32] {
                &self.0
            }
        }

        unprinted! { $name }
    )+};
}

keys! {
    /// Keys the fingerprint of a normalized request.
    FingerprintKey,
    /// Keys the digest of a request's raw bytes.
    BodyDigestKey,
    /// Keys the pseudonyms of an API key's end users.
    PseudonymKey,
    /// Seals the results of one operation.
    ResultKey,
    /// Chains the rows of the trail.
    TrailKey,
    /// Signs the deliveries of one webhook; its receiver has it too.
    WebhookKey,
    /// Keys the digest of a node's settings.
    SettingsKey,
    /// Seals the cursors of lists.
    CursorKey,
    /// Signs receipts and roots of the ledger.
    ReceiptKey,
}

impl CursorKey {
    /// The key with exactly these bytes, for a process without a server secret: its cursors are of this
    /// process alone.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl SettingsKey {
    /// The digest of settings, spelled in one way. A secret is no part of them.
    #[must_use]
    pub fn digest(&self, settings: &str) -> SettingsDigest {
        SettingsDigest(blake3::keyed_hash(&self.0, settings.as_bytes()))
    }
}

impl PseudonymKey {
    /// Pseudonym that a provider gets instead of a caller's name for an end user or a cache: 22 letters and
    /// digits. Equal names of one API key have one pseudonym; without the key it cannot be matched to a name,
    /// or made of another API key's name.
    #[must_use]
    pub fn pseudonym(&self, name: &str) -> String {
        // Half of the hash: 128 bits are 22 digits, and no two names meet by chance.
        let [half @ .., _, _, _, _, _, _, _, _, _, _, _, _, _, _, _, _] =
            *blake3::keyed_hash(&self.0, name.as_bytes()).as_bytes();
        base62::write(&half, base62::LEN_OF_128)
    }
}

impl FingerprintKey {
    /// The fingerprint of a request that is no chat: of its normal form, in which everything that makes
    /// two requests one request is spelled alike. A chat's is [`fingerprint`](crate::request::fingerprint).
    #[must_use]
    pub fn digest(&self, normal_form: &[u8]) -> Fingerprint {
        Fingerprint(blake3::keyed_hash(&self.0, normal_form))
    }
}

impl BodyDigestKey {
    /// The digest of a request's raw bytes.
    #[must_use]
    pub fn digest(&self, body: &[u8]) -> BodyDigest {
        BodyDigest(blake3::keyed_hash(&self.0, body))
    }
}

/// Keyed digest of a request's raw bytes: equal digests mean the same request without parsing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyDigest(blake3::Hash);

/// Keyed hash of a normalized request and its model contract: what a request key is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint(blake3::Hash);

/// Keyed digest of the settings on which the nodes of a database should agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsDigest(blake3::Hash);

impl fmt::Display for SettingsDigest {
    /// The first 16 hexadecimal digits: enough for people to distinguish two files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_bytes().iter().take(8).try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Gives a digest its bytes, for storage.
macro_rules! stored {
    ($($name:ident),+) => {$(
        impl $name {
            /// The digest with exactly these bytes.
            #[must_use]
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(blake3::Hash::from_bytes(bytes))
            }

            /// The bytes that are stored.
            #[must_use]
            pub const fn to_bytes(&self) -> [u8; 32] {
                *self.0.as_bytes()
            }
        }
    )+};
}

stored!(BodyDigest, Fingerprint, SettingsDigest);
