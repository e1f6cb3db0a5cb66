//! `[providers.NAME]`: a provider's kind, its address and its credentials, as the options of its
//! client.
//!
//! `kind` decides which other keys a table has. Every kind with a server shares `base_url`, `api_key`,
//! `pool_idle`, `event_bytes`, `image_urls` and `idempotency_header`, which `server` reads; the function of a
//! kind adds its own, and its defaults. If the kind cannot be read, the other keys are not judged: their
//! meaning is unknown.
//!
//! Credentials come from `${NAME}` in most files. They are checked for characters that no header
//! can carry, and no message has one. Whether a provider accepts them is not known here: that is
//! for `holdfast check-config --probe`.
//!
//! A new kind has a row in `KINDS`, with its own keys and the function that reads them. The gateway needs no
//! more: it makes one client of the options that the function returns.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::time::Duration;

use holdfast_domain::answer::FinishReason;
use holdfast_net::{BaseUrl, Proxies};
use holdfast_providers::kinds::{
    Anthropic, ApiVersion, AwsKeys, AzureOpenAi, Bedrock, Gemini, Holdfast, HttpOptions, Kind,
    OpenAi, Region,
};
use holdfast_providers::{ImageUrls, KeyHeader, LateSystem, ServerOptions, UpstreamKey};
use holdfast_wire::chat::completion::finish_label;
use holdfast_wire::chat::upstream::{BoundField, FinishWords};

use crate::document::{ConfigTable, Field, did_you_mean};
use crate::price::currency;

/// A configured provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderKind {
    /// Built in; reaches no server.
    Simulated,
    /// Any other: behind a server.
    Http(Box<HttpOptions>),
}

/// Key of the kinds whose ends of an answer have words of a server's own.
const FINISH_REASONS: &str = "finish_reasons";

/// Name of a kind, the keys that it has of its own, and the function that reads its table.
struct KindRow(&'static str, &'static [&'static str], fn(&ConfigTable<'_>) -> Option<HttpOptions>);

/// Every kind with a server. The first is the one for servers of no other kind: the message for a mistyped kind
/// begins with it.
const KINDS: [KindRow; 6] = [
    KindRow("openai", &["output_bound_field", FINISH_REASONS], openai),
    KindRow("anthropic", &["sampling", "late_system"], anthropic),
    KindRow("gemini", &["skip_signatures", "late_system"], gemini),
    KindRow("azure-openai", &["output_bound_field", FINISH_REASONS, "api_version"], azure),
    KindRow(
        "bedrock",
        &["region", "access_key_id", "secret_access_key", "session_token", "late_system"],
        bedrock,
    ),
    KindRow("holdfast", &["currency"], holdfast),
];

/// Keys of every kind with a server.
const SERVER_KEYS: [&str; 6] =
    ["base_url", "api_key", "pool_idle", "image_urls", "event_bytes", "idempotency_header"];

const SIMULATED: &str = "simulated";

/// Every provider by its name; `None` for one with a mistake, which routes may name all the same.
pub(crate) fn all<'d>(
    table: &ConfigTable<'d>,
    proxies: &Proxies,
) -> BTreeMap<&'d str, Option<ProviderKind>> {
    let all = table.named_tables().into_iter();
    all.map(|(name, table)| {
        if !is_name(name) {
            table.mistake(
                "a provider's name has 1 to 64 letters, digits, hyphens and underscores: rename the \
                 table, and its routes with it",
            );
        }
        (name, one(&table, proxies))
    })
    .collect()
}

/// True for a name of 1 to 64 letters, digits, hyphens and underscores: it labels metrics, and is
/// shown beside the model that it serves.
fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=64).contains(&name.len()) && name.bytes().all(plain)
}

fn one(table: &ConfigTable<'_>, proxies: &Proxies) -> Option<ProviderKind> {
    let field = table.required("kind", "kind = \"openai\" or kind = \"simulated\"");
    let kind = field.and_then(|field| {
        let written = field.text()?;
        if written == SIMULATED {
            return Some(simulated(table));
        }
        if let Some(KindRow(_, keys, read)) =
            KINDS.iter().find(|KindRow(name, ..)| *name == written)
        {
            if !keys.contains(&FINISH_REASONS) {
                let named =
                    KINDS.iter().filter(|KindRow(_, keys, _)| keys.contains(&FINISH_REASONS));
                let named: Vec<_> = named.map(|KindRow(name, ..)| format!("\"{name}\"")).collect();
                let why = format!(
                    "is for the kinds {}: the words of this kind are those of its API; remove it",
                    named.join(" and ")
                );
                table.refuse(FINISH_REASONS, &why);
            }
            return Some(read(table).map(|mut options| {
                options.server.proxies = proxies.clone();
                ProviderKind::Http(Box::new(options))
            }));
        }
        let names = KINDS.iter().map(|KindRow(name, ..)| *name).chain([SIMULATED]);
        let meant = did_you_mean(written, names);
        let others = KINDS.iter().skip(1).map(|KindRow(name, ..)| format!("\"{name}\""));
        let others = others.collect::<Vec<_>>().join(", ");
        field.mistake(format_args!(
            "is not available in this version: {meant}write \"openai\", for any server that speaks \
             like it, {others} or \"{SIMULATED}\""
        ));
        None
    });
    // `kind` is known if it names one, even if the keys of that kind have mistakes.
    if kind.is_some() {
        table.refuse_unknown();
    } else {
        table.ignore_unknown();
    }
    kind.flatten()
}

fn simulated(table: &ConfigTable<'_>) -> Option<ProviderKind> {
    let mut kind = Some(ProviderKind::Simulated);
    // A set: two kinds may share a key, and each is refused once.
    let keys: BTreeSet<_> = KINDS.iter().flat_map(|KindRow(_, keys, _)| *keys).collect();
    for key in SERVER_KEYS.iter().chain(keys) {
        // The whole list is known to the table, so that each is refused for its reason and not as
        // unknown.
        if let Some(field) = table.field(key) {
            field.mistake(
                "has no effect on the simulated provider, which connects to no provider: remove it",
            );
            kind = None;
        }
    }
    kind
}

fn openai(table: &ConfigTable<'_>) -> Option<HttpOptions> {
    let base_url = table
        .required("base_url", "base_url = \"https://api.openai.com/v1\"")
        .and_then(|field| field.parse(BaseUrl::try_from));
    let server = server(table, base_url, table.field("api_key"));
    let dialect = dialect(table);
    Some(HttpOptions { server: server?, kind: Kind::OpenAi(dialect?) })
}

fn dialect(table: &ConfigTable<'_>) -> Option<OpenAi> {
    let bound_field = bound_field(table);
    // Read before `?` can end the function, so that its mistakes are found as well.
    let finish_words = finish_words(&table.table(FINISH_REASONS));
    Some(OpenAi { bound_field: bound_field?, finish_words: finish_words? })
}

fn bound_field(table: &ConfigTable<'_>) -> Option<BoundField> {
    let Some(field) = table.field("output_bound_field") else {
        return Some(BoundField::MaxCompletionTokens);
    };
    match field.text()? {
        "max_completion_tokens" => Some(BoundField::MaxCompletionTokens),
        "max_tokens" => Some(BoundField::MaxTokens),
        _ => {
            field.mistake("must be \"max_completion_tokens\" or \"max_tokens\"");
            None
        }
    }
}

/// Words of a server for the end of an answer, each with its meaning.
fn finish_words(table: &ConfigTable<'_>) -> Option<FinishWords> {
    const MEANINGS: [FinishReason; 4] = [
        FinishReason::Stop,
        FinishReason::Length,
        FinishReason::ToolCalls,
        FinishReason::ContentFilter,
    ];
    let mut words = Some(FinishWords::NONE);
    for (word, field) in table.named_fields() {
        let meaning = field.text().and_then(|written| {
            let found = MEANINGS.into_iter().find(|finish| finish_label(*finish) == written);
            if found.is_none() {
                field.mistake("must be \"stop\", \"length\", \"tool_calls\" or \"content_filter\"");
            }
            found
        });
        words = match (words, meaning) {
            (Some(known), Some(meaning)) => match known.with(word, meaning) {
                Ok(more) => Some(more),
                Err(error) => {
                    field.mistake(format_args!("has no place here: {error}"));
                    None
                }
            },
            (Some(_) | None, Some(_) | None) => None,
        };
    }
    words
}

fn anthropic(table: &ConfigTable<'_>) -> Option<HttpOptions> {
    let base_url = base_url_or(table, Anthropic::BASE_URL);
    let api_key = table.required("api_key", "api_key = \"${ANTHROPIC_API_KEY}\"");
    let server = server(table, base_url, api_key);
    let sampling = table.field("sampling").map_or(Some(false), |field| field.flag());
    let late_system = late_system(table);
    let kind = Kind::Anthropic(Anthropic { sampling: sampling?, late_system: late_system? });
    Some(HttpOptions { server: server?, kind })
}

fn gemini(table: &ConfigTable<'_>) -> Option<HttpOptions> {
    let base_url = base_url_or(table, Gemini::BASE_URL);
    let api_key = table.required("api_key", "api_key = \"${GEMINI_API_KEY}\"");
    let server = server(table, base_url, api_key);
    let skip_signatures = table.field("skip_signatures").map_or(Some(false), |field| field.flag());
    let late_system = late_system(table);
    let kind = Gemini { skip_signatures: skip_signatures?, late_system: late_system? };
    Some(HttpOptions { server: server?, kind: Kind::Gemini(kind) })
}

fn azure(table: &ConfigTable<'_>) -> Option<HttpOptions> {
    let base_url = table
        .required("base_url", "base_url = \"https://RESOURCE.openai.azure.com/openai/v1\"")
        .and_then(|field| field.parse(BaseUrl::try_from));
    let api_key = table.required("api_key", "api_key = \"${AZURE_OPENAI_API_KEY}\"");
    let server = server(table, base_url, api_key);
    let api_version = table.field("api_version").map(|field| field.parse(ApiVersion::try_from));
    let mut kind = AzureOpenAi { dialect: dialect(table)?, api_version: None };
    if let Some(api_version) = api_version {
        kind.api_version = Some(api_version?);
    }
    Some(HttpOptions { server: server?, kind: Kind::AzureOpenAi(kind) })
}

fn bedrock(table: &ConfigTable<'_>) -> Option<HttpOptions> {
    let region = table
        .required("region", "region = \"eu-central-1\"")
        .and_then(|field| field.parse(Region::try_from));
    let base_url = match table.field("base_url") {
        Some(field) => field.parse(BaseUrl::try_from),
        None => region
            .as_ref()
            .and_then(|region| BaseUrl::try_from(Bedrock::base_url(region).as_str()).ok()),
    };
    // Two credentials would leave open which account pays: one of them, or a mistake.
    let keys = keys(table);
    let api_key = if keys.is_some() {
        let beside = table.field("api_key");
        if let Some(field) = &beside {
            field.mistake("is set together with access_key_id: remove one of the two credentials");
        }
        beside
    } else {
        let example =
            "api_key = \"${AWS_BEARER_TOKEN_BEDROCK}\", or access_key_id and secret_access_key";
        table.required("api_key", example)
    };
    let server = server(table, base_url, api_key);
    let late_system = late_system(table);
    let mut kind = Bedrock { region: region?, keys: None, late_system: late_system? };
    if let Some(keys) = keys {
        kind.keys = Some(keys?);
    }
    Some(HttpOptions { server: server?, kind: Kind::Bedrock(kind) })
}

fn holdfast(table: &ConfigTable<'_>) -> Option<HttpOptions> {
    let base_url = table
        .required("base_url", "base_url = \"https://GATEWAY/v1\"")
        .and_then(|field| field.parse(BaseUrl::try_from));
    let api_key = table.required("api_key", "api_key = \"${INNER_API_KEY}\"");
    if let Some(field) = table.field("idempotency_header") {
        field.mistake("is Idempotency-Key for this kind, always: remove it");
    }
    let server = server(table, base_url, api_key);
    let currency = currency(table);
    Some(HttpOptions { server: server?, kind: Kind::Holdfast(Holdfast { currency: currency? }) })
}

/// Treatment of instructions after the first turn, by kinds whose API has no place for them.
fn late_system(table: &ConfigTable<'_>) -> Option<LateSystem> {
    let Some(field) = table.field("late_system") else { return Some(LateSystem::default()) };
    let written = field.text()?;
    let found = LateSystem::ALL.into_iter().find(|treatment| treatment.label() == written);
    if found.is_none() {
        field.mistake(
            "must be \"fold\", which sends system and developer messages after the first turn as marked \
             text of the user, or \"refuse\", which refuses such requests",
        );
    }
    found
}

/// The keys of an account, if one of them is there; all of them or a mistake.
fn keys(table: &ConfigTable<'_>) -> Option<Option<AwsKeys>> {
    let id = table.field("access_key_id");
    let secret = match &id {
        Some(_) => {
            table.required("secret_access_key", "secret_access_key = \"${AWS_SECRET_ACCESS_KEY}\"")
        }
        None => table.field("secret_access_key"),
    };
    let token = table.field("session_token");
    let Some(id) = id else {
        for field in [&secret, &token].into_iter().flatten() {
            field.mistake("goes with access_key_id: add that, or remove it");
        }
        // Half of the keys: `Some(None)`, or the caller would report a missing `api_key` on top.
        return (secret.is_some() || token.is_some()).then_some(None);
    };
    // Read before the other two can end the function, so that its mistake is found as well.
    let token = token.map(|field| credential(&field));
    let read = || {
        let access_key_id = credential(&id);
        let secret_access_key = secret.as_ref().and_then(credential);
        let mut keys = AwsKeys {
            access_key_id: access_key_id?,
            secret_access_key: secret_access_key?,
            session_token: None,
        };
        if let Some(token) = token {
            keys.session_token = Some(token?);
        }
        Some(keys)
    };
    Some(read())
}

/// A secret of visible ASCII.
fn credential(field: &Field<'_>) -> Option<String> {
    let secret = field.secret()?;
    match UpstreamKey::try_from(secret.expose()) {
        // Judged as the key of a server is, but kept as text: the signer makes its own header of it.
        Ok(_key) => Some(secret.expose().to_owned()),
        Err(error) => {
            field.mistake(format_args!("is {error}"));
            None
        }
    }
}

/// The base URL of a provider that has one address for everybody.
fn base_url_or(table: &ConfigTable<'_>, usual: &str) -> Option<BaseUrl> {
    match table.field("base_url") {
        Some(field) => field.parse(BaseUrl::try_from),
        None => BaseUrl::try_from(usual).ok(),
    }
}

/// Options that every kind with a server shares; `None` if one of them has a mistake.
fn server(
    table: &ConfigTable<'_>,
    base_url: Option<BaseUrl>,
    api_key: Option<Field<'_>>,
) -> Option<ServerOptions> {
    const POOL_IDLE_MAX: Duration = Duration::from_secs(3_600);
    let api_key = api_key.map(|field| {
        let key = field.secret()?;
        match UpstreamKey::try_from(key.expose()) {
            Ok(key) => Some(key),
            Err(error) => {
                field.mistake(format_args!("is {error}"));
                None
            }
        }
    });
    let pool_idle =
        table.field("pool_idle").map(|field| field.span(Duration::from_millis(1)..=POOL_IDLE_MAX));
    const EVENT_BYTES: RangeInclusive<u32> = 16_384..=64 << 20;
    let event_bytes = table.field("event_bytes").map(|field| field.size(EVENT_BYTES));
    let image_urls = table.field("image_urls").map(|field| image_urls(&field));
    let key_header =
        table.field("idempotency_header").map(|field| field.parse(KeyHeader::try_from));
    // All keys have been read by here: `?` gives up without hiding a mistake.
    let mut options = ServerOptions::new(base_url?);
    if let Some(event_bytes) = event_bytes {
        options.event_bytes_max = event_bytes?;
    }
    if let Some(image_urls) = image_urls {
        options.image_urls = image_urls?;
    }
    if let Some(api_key) = api_key {
        options.api_key = Some(api_key?);
    }
    if let Some(pool_idle) = pool_idle {
        options.pool_idle = pool_idle?;
    }
    if let Some(key_header) = key_header {
        options.key_header = Some(key_header?);
    }
    Some(options)
}

fn image_urls(field: &Field<'_>) -> Option<ImageUrls> {
    let written = field.text()?;
    let found = ImageUrls::ALL.into_iter().find(|urls| urls.label() == written);
    if found.is_none() {
        field.mistake(
            "must be \"https\", for images at https: URLs and in data: URLs, \"any\", for http: \
             URLs too, or \"data\", for images in data: URLs only",
        );
    }
    found
}
