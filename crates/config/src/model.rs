//! `[[models]]`: public models with their contracts and time-outs, and the routes that answer for
//! them. Prices are read in `price`.
//!
//! A model is built only if each of its parts is free of mistakes, but all parts are read first, so that one
//! run reports every mistake. A route may name a provider that has a mistake of its own: that provider is in
//! the map as `None`, and the route is not blamed for it.
//!
//! Defaults of timeouts give way to a shorter `total`: with only `total = "10s"` set, the others need not be
//! lowered as well. A timeout that was written and is longer than `total` is a mistake.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::model::{Contract, IgnoredField, ModelAlias, PublicModelId, RestrictedField};
use holdfast_domain::request::Request;
use holdfast_domain::usage::Meters;
use holdfast_engine::{Guarantee, Model, Route, Timeouts};
use holdfast_providers::Simulator;
use holdfast_wire::chat::request::{is_known_member, known_words};

use crate::document::{ConfigTable, Field, did_you_mean};
use crate::misplaced::refuse_misplaced;
use crate::price::{PricePlaces, cost, prices};
use crate::process::LimitsConfig;
use crate::provider::ProviderKind;

/// Most aliases of a model.
const ALIASES_MAX: usize = 16;
/// Fewer tokens than the largest count that is believed of a report.
const TOKENS_MAX: u64 = Meters::COUNT_MAX - 1;
const MILLION: u64 = 1_000_000;
const CONNECT: Duration = Duration::from_secs(2);
const FIRST_TOKEN: Duration = Duration::from_secs(60);
const BETWEEN_TOKENS: Duration = Duration::from_secs(30);
const TOTAL: Duration = Duration::from_secs(600);
/// The longest time that a call may be given.
const TIME_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Members of a request that are never ignored, with the reason.
const NEVER_IGNORED: [(&str, &str); 16] = [
    ("audio", PRICED),
    ("function_call", ASKED),
    ("functions", ASKED),
    ("max_completion_tokens", BOUND),
    ("max_tokens", BOUND),
    ("messages", ASKED),
    ("modalities", PRICED),
    ("model", ASKED),
    ("n", BOUND),
    ("service_tier", PRICED),
    ("stop", BOUND),
    ("stream", FORM),
    ("stream_options", FORM),
    ("tool_choice", ASKED),
    ("tools", ASKED),
    ("web_search_options", PRICED),
];
const ASKED: &str = "identifies the request";
const BOUND: &str = "bounds the answer";
const PRICED: &str = "chooses between prices";
const FORM: &str = "is the form of the answer";

/// The longest word that `accepts` opens.
const WORD_BYTES_MAX: usize = 64;
/// The highest priority, weight and number of calls of a route.
const COUNT_MAX: u64 = 1_000_000;

type Providers<'d> = BTreeMap<&'d str, Option<ProviderKind>>;

/// Every model without a mistake, and the place of its prices in the file.
pub(crate) fn all(
    root: &ConfigTable<'_>,
    providers: &Providers<'_>,
    limits: &LimitsConfig,
) -> (Vec<Model>, PricePlaces) {
    let tables = root.tables("models");
    if tables.is_empty() {
        root.mistake("there is no model: write a table [[models]], as deploy/holdfast.toml shows");
    }
    let mut names = ModelNames::default();
    let mut places = PricePlaces::new();
    let one = |table| one(table, providers, limits, &mut names, &mut places);
    let models = tables.iter().filter_map(one).collect();
    (models, places)
}

/// Lines of the ids and the aliases that were read so far. No alias is an id: it has no slash.
#[derive(Default)]
struct ModelNames {
    ids: BTreeMap<PublicModelId, usize>,
    aliases: BTreeMap<ModelAlias, usize>,
}

fn one(
    table: &ConfigTable<'_>,
    providers: &Providers<'_>,
    limits: &LimitsConfig,
    names: &mut ModelNames,
    places: &mut PricePlaces,
) -> Option<Model> {
    let id = table.required("id", "id = \"publisher/name\"").and_then(|field| {
        let id = id(&field)?;
        match names.ids.entry(id.clone()) {
            Entry::Occupied(first) => {
                let line = first.get();
                field.mistake(format_args!(
                    "{id} is the model of line {line} already: write another"
                ));
            }
            Entry::Vacant(place) => {
                place.insert(field.line());
            }
        }
        Some(id)
    });
    let aliases = aliases(table, &mut names.aliases);
    let contract = contract(table, id.clone());
    let guarantee = guarantee(table);
    let timeouts = timeouts(&table.table("timeout"));
    let body_bytes = table
        .field("body_bytes")
        .map_or(Some(limits.body_bytes), |field| field.size(1_024..=1 << 30));
    let prices = prices(table, id.as_ref(), places);
    let routes = routes(table, providers);
    table.refuse_unknown();
    Some(Model {
        contract: contract?,
        aliases: aliases?,
        timeouts,
        body_bytes: body_bytes?,
        prices,
        guarantee: guarantee?,
        routes,
    })
}

fn id(field: &Field<'_>) -> Option<PublicModelId> {
    let id = PublicModelId::try_from(field.text()?).ok();
    if id.is_none() {
        field.mistake(
            "is not a model id: write publisher/name, like acme/large-1: the publisher of a-z 0-9 . _ \
             -, the name of A-Z a-z 0-9 . _ : -, each beginning with a letter or a digit, at most 128 \
             bytes",
        );
    }
    id
}

/// Other names of the model, each of which no other model has.
fn aliases(
    table: &ConfigTable<'_>,
    known: &mut BTreeMap<ModelAlias, usize>,
) -> Option<Vec<ModelAlias>> {
    let Some(field) = table.field("aliases") else { return Some(Vec::new()) };
    let aliases = field.each(|field| {
        let alias = ModelAlias::try_from(field.text()?).ok();
        if alias.is_none() {
            field.mistake(format_args!(
                "is not an alias: write 1 to {} of a-z 0-9 . _ -, the first a letter or a digit, like smart",
                ModelAlias::LEN_MAX
            ));
        }
        alias
    })?;
    if aliases.len() > ALIASES_MAX {
        field.mistake(format_args!(
            "has {} aliases: a model has at most {ALIASES_MAX}",
            aliases.len()
        ));
    }
    for alias in &aliases {
        match known.entry(alias.clone()) {
            Entry::Occupied(first) => {
                let line = first.get();
                field.mistake(format_args!(
                    "{alias} is the alias of line {line} already: write another"
                ));
            }
            Entry::Vacant(place) => {
                place.insert(field.line());
            }
        }
    }
    Some(aliases)
}

fn contract(table: &ConfigTable<'_>, model: Option<PublicModelId>) -> Option<Contract> {
    let version = table
        .required("contract", "contract = 1, and count it up when the model's limits change")
        .and_then(|field| u32::try_from(field.count(1..=u64::from(u32::MAX))?).ok());
    let context =
        table.required("context_tokens", "context_tokens = 128_000, as the provider documents it");
    let context = context.and_then(|field| field.count(1..=TOKENS_MAX));
    let output = table
        .required("max_output_tokens", "max_output_tokens = 16_384, as the provider documents it");
    let output = output.and_then(|field| Some((field.count(1..=TOKENS_MAX)?, field)));
    if let (Some(context), Some((output, field))) = (context, &output)
        && *output > context
    {
        field.mistake(format_args!("must be at most context_tokens, which is {context}"));
    }
    // One token a byte is the bound of every tokenizer that works on bytes, and so the default.
    let per_byte = table
        .field("prompt_tokens_per_byte")
        .map_or(Some(MILLION), |field| field.millionths(1..=MILLION.saturating_mul(1_000)));
    let overhead = table
        .field("prompt_overhead_tokens")
        .map_or(Some(None), |field| field.count(0..=TOKENS_MAX).map(Some));
    let image = table
        .field("image_tokens")
        .map_or(Some(None), |field| field.count(1..=TOKENS_MAX).map(Some));
    let accepts = table.field("accepts").map_or(Some(Vec::new()), |field| field.each(accepted));
    let allow = table.field("allow").map_or(Some(Vec::new()), |field| field.each(restricted));
    let ignores = table.field("ignores").map_or(Some(Vec::new()), |field| field.each(ignored));
    Some(Contract {
        prompt_tokens_per_byte_millionths: per_byte?,
        prompt_overhead_tokens: overhead?,
        image_tokens: image?,
        accepts: accepts?,
        allow: allow?.into_iter().collect(),
        ignores: ignores?,
        ..Contract::new(model?, version?, context?, output?.0)
    })
}

/// The name of a request's member that OpenAI's schema does not have, or a word that it does not have
/// for one of its members.
fn accepted(field: &Field<'_>) -> Option<String> {
    let name = field.text()?;
    if name.is_empty() {
        field.mistake("must not be empty");
        return None;
    }
    // A colon, as JSON has one, is taken too; other names may have colons of their own.
    let of_json = || name.split_once(':').filter(|(name, _)| Request::WORDS.contains(&name.trim()));
    if let Some((member, word)) = name.split_once('=').or_else(of_json) {
        return accepted_word(field, member.trim(), word.trim().trim_matches('"'));
    }
    if Request::WORDS.contains(&name) {
        field.mistake(format_args!(
            "names `{name}`, which every model takes without it, or which `allow` is for: leave it out, \
             or open one more word of it, as \"{name}=WORD\""
        ));
        return None;
    }
    if is_known_member(name) {
        let name = name.escape_debug();
        field.mistake(format_args!(
            "names `{name}`, which every model takes without it, or which `allow` is for: leave it out; \
             it is for fields that OpenAI's schema does not have"
        ));
        return None;
    }
    Some(name.to_owned())
}

/// A word of a member that has words, as `member=word`.
fn accepted_word(field: &Field<'_>, member: &str, word: &str) -> Option<String> {
    if !Request::WORDS.contains(&member) {
        let (meant, known) = (did_you_mean(member, Request::WORDS), Request::WORDS.join(", "));
        let member = member.escape_debug();
        field.mistake(format_args!(
            "opens a word of `{member}`, which has no words to open: {meant}those are words of {known}"
        ));
        return None;
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if !(1..=WORD_BYTES_MAX).contains(&word.len()) || !word.bytes().all(is_plain) {
        field.mistake(format_args!(
            "must have 1 to {WORD_BYTES_MAX} letters, digits, `_`, `-` and `.` after `{member}=`"
        ));
        return None;
    }
    // Other tiers have other prices, so that each may be opened by itself.
    let is_tier = member == "service_tier" && !matches!(word, "auto" | "default");
    if known_words(member).contains(&word) && !is_tier {
        field.mistake(format_args!(
            "opens `{word}` of `{member}`, which every model takes without it, or which `allow` is for: \
             leave it out"
        ));
        return None;
    }
    Some(format!("{member}={word}"))
}

/// A field of requests that every model refuses unless its `allow` names it.
fn restricted(field: &Field<'_>) -> Option<RestrictedField> {
    let name = field.text()?;
    let found = RestrictedField::ALL.into_iter().find(|restricted| restricted.label() == name);
    if found.is_none() {
        let labels = RestrictedField::ALL.map(RestrictedField::label);
        let (meant, known) = (did_you_mean(name, labels), labels.join(", "));
        field.mistake(format_args!("names no field that needs allowing: {meant}those are {known}"));
    }
    found
}

/// A field of requests that the model's providers are not sent.
fn ignored(field: &Field<'_>) -> Option<IgnoredField> {
    let name = field.text()?;
    let found = IgnoredField::ALL.into_iter().find(|ignored| ignored.label() == name);
    if found.is_some() {
        return found;
    }
    let labels = IgnoredField::ALL.map(IgnoredField::label);
    let known = labels.join(", ");
    match NEVER_IGNORED.iter().find(|(never, _)| *never == name) {
        Some((never, why)) => field
            .mistake(format_args!("names `{never}`, which {why} and is never ignored: remove it")),
        None => {
            let meant = did_you_mean(name, labels);
            field.mistake(format_args!("names no field to ignore: {meant}those are {known}"));
        }
    }
    None
}

fn guarantee(table: &ConfigTable<'_>) -> Option<Guarantee> {
    let Some(field) = table.field("guarantee") else { return Some(Guarantee::OneRun) };
    match field.text()? {
        "one-run" => Some(Guarantee::OneRun),
        "one-charge" => Some(Guarantee::OneCharge),
        _ => {
            field.mistake(
                "must be \"one-run\", which sends a request to a model at most once, or \
                 \"one-charge\", which may send it to the next route as well, at your cost",
            );
            None
        }
    }
}

fn timeouts(table: &ConfigTable<'_>) -> Timeouts {
    let given = |key| {
        let field = table.field(key);
        field.and_then(|field| field.span(Duration::from_millis(1)..=TIME_MAX))
    };
    let [connect, first_token, between_tokens, total] =
        ["connect", "first_token", "between_tokens", "total"].map(given);
    // Only defaults shrink to `total`. A longer value that the operator wrote is reported below.
    let total = total.unwrap_or(TOTAL);
    let timeouts = Timeouts {
        connect: connect.unwrap_or(CONNECT),
        first_token: first_token.unwrap_or(FIRST_TOKEN.min(total)),
        between_tokens: between_tokens.unwrap_or(BETWEEN_TOKENS.min(total)),
        total,
    };
    for (key, time) in [
        ("connect", timeouts.connect),
        ("first_token", timeouts.first_token),
        ("between_tokens", timeouts.between_tokens),
    ] {
        if time > total {
            table.mistake(format!(
                "`models.timeout.total` must not be shorter than `{key}`: it bounds the whole call"
            ));
        }
    }
    table.refuse_unknown();
    timeouts
}

fn routes(model: &ConfigTable<'_>, providers: &Providers<'_>) -> Vec<Route> {
    let tables = model.tables("routes");
    if tables.is_empty() {
        model.mistake(
            "the model has no route: write a table [[models.routes]] with provider and model",
        );
    }
    let mut routes = Vec::<Route>::new();
    for table in &tables {
        let Some(route) = route(table, providers) else { continue };
        // Breaker, concurrency and metrics go by a route's name: two of one name would share them.
        if routes.iter().any(|other| other.name() == route.name()) {
            table.mistake(format!(
                "{} is a route of this model already: a model of a provider is one route, with all of \
                 its weight",
                route.name().escape_debug()
            ));
        }
        routes.push(route);
    }
    routes
}

fn route(table: &ConfigTable<'_>, providers: &Providers<'_>) -> Option<Route> {
    let provider = table.required("provider", "provider = \"NAME\" of [providers.NAME]");
    let provider = provider.and_then(|field| {
        let name = field.text()?;
        if !providers.contains_key(name) {
            let names: Vec<_> = providers.keys().copied().collect();
            let configured = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ").escape_debug().to_string()
            };
            let (meant, name) = (did_you_mean(name, names), name.escape_debug());
            field.mistake(format_args!(
                "names no provider: {meant}configured are {configured}; or write a table \
                 [providers.{name}]"
            ));
        }
        Some(name)
    });
    let model = table.required("model", "model = \"NAME\", the provider's name of it");
    let model = model.and_then(|field| {
        let model = field.text()?;
        // A provider with a mistake has no kind here: its models cannot be checked, and need not
        // be.
        let kind = provider.and_then(|name| providers.get(name)?.as_ref());
        if model.is_empty() {
            field.mistake("is empty: write the provider's name of the model");
        } else if matches!(kind, Some(ProviderKind::Simulated))
            && !Simulator::MODELS.contains(&model)
        {
            let [one, other] = Simulator::MODELS;
            field.mistake(format_args!(
                "must be \"{one}\" or \"{other}\", the simulated provider's models"
            ));
        }
        Some(model)
    });
    let count = |key, least| {
        let field = table.field(key)?;
        Some(field.count(least..=COUNT_MAX).and_then(|count| u32::try_from(count).ok()))
    };
    // The outer `None` is a key that is not set, the inner one a mistake: only the latter costs the
    // route, further down.
    let (priority, weight) = (count("priority", 0), count("weight", 1));
    let concurrency = count("concurrency", 1);
    let cost = cost(&table.table("cost"));
    refuse_misplaced(table);
    table.refuse_unknown();
    Some(Route {
        provider: provider?.to_owned(),
        model: Arc::from(model?),
        priority: priority.unwrap_or(Some(0))?,
        weight: weight.unwrap_or(Some(1))?,
        concurrency: concurrency.map_or(Some(None), |most| most.map(Some))?,
        cost: cost?.map(Arc::new),
    })
}
