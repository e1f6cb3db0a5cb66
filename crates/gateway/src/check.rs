//! `holdfast check-config`: the mistakes of the configuration, the objections of the database to it, and the
//! answers of its providers and routes. The check writes no data; a probe runs each route's model once.
//!
//! ```text
//! read the file ─▶ mistakes, with their lines ─▶ --database: prices compared ─▶ --probe: providers, then routes
//! ```
//!
//! The database and the network are reached only on request, so that a file can be checked on a machine without either.
//! In JSON a refused file has the same view as a good one, so that a program reads one form. Never in the output: a
//! secret, or the value of a mistake.

mod database;
mod routes;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use holdfast_domain::model::Contract;
use holdfast_engine::Model;
use holdfast_providers::{ChainProvider, HttpProvider, KeyUse};
use serde::Serialize;

use self::database::DatabaseView;
use self::routes::RouteView;
use holdfast_bootstrap::provider::client;
use holdfast_cli::arguments::ConfigChecks;
use holdfast_cli::failure::{CommandFailure, Status};
use holdfast_cli::output::Output;
use holdfast_config::{BadConfig, Config, ProviderKind};

/// Time for one provider's answer to a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize)]
struct CheckView {
    ok: bool,
    file: Option<String>,
    providers: usize,
    models: usize,
    mistakes: Vec<String>,
    /// Settings that are taken, and were probably not meant.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// Fields that models accept or ignore.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<FieldsView>,
    /// Aliases of models.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    aliases: BTreeMap<String, Vec<String>>,
    /// Micros that one actor with the role support refunds in a UTC day, by currency.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    support_refunds: BTreeMap<String, i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probes: Option<Vec<ProbeView>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    routes: Option<Vec<RouteView>>,
}

/// Fields of requests that a model accepts beyond OpenAI's schema, and those that its providers are not sent.
#[derive(Debug, Serialize)]
struct FieldsView {
    model: String,
    accepts: Vec<String>,
    ignores: Vec<&'static str>,
}

impl FieldsView {
    fn lines(&self) -> impl Iterator<Item = (&'static str, String)> {
        let Self { model, accepts, ignores } = self;
        let lists = [("accepts", accepts.join(", ")), ("ignores", ignores.join(", "))];
        let named = lists.into_iter().filter(|(_, names)| !names.is_empty());
        named.map(move |(list, names)| (list, format!("{model}: {names}")))
    }
}

/// Result of one provider's probe.
#[derive(Debug, Serialize)]
struct ProbeView {
    provider: String,
    ok: bool,
    /// HTTP status of the answer; `None` if none came.
    status: Option<u16>,
    answer: String,
}

pub(super) async fn run(
    output: Output,
    config: Result<Config, BadConfig>,
    file: Option<PathBuf>,
    checks: &ConfigChecks,
) -> Result<(), CommandFailure> {
    let file = file.map(|file| file.display().to_string());
    let config = match config {
        Ok(config) => config,
        Err(bad) => return refuse(output, file.as_ref(), bad.into()),
    };
    let database = match checks.database {
        true => match database::compare(&config).await {
            Ok(compared) => Some(compared),
            Err(failure) => return refuse(output, file.as_ref(), failure),
        },
        false => None,
    };
    let (probes, routes) = match checks.probe {
        true => (Some(probes(&config).await?), Some(routes::call_all(&config).await?)),
        false => (None, None),
    };
    let (providers, models) = (config.providers.len(), config.models.len());
    let mut fields = vec![
        ("configuration", file.clone().unwrap_or_else(|| "the embedded default".to_owned())),
        ("providers", providers.to_string()),
        ("models", models.to_string()),
        ("mistakes", "none".to_owned()),
    ];
    let warnings: Vec<_> = config.exposure.iter().map(ToString::to_string).collect();
    fields.extend(warnings.iter().map(|warning| ("warning", warning.clone())));
    let named = fields_of(&config);
    fields.extend(named.iter().flat_map(FieldsView::lines));
    let aliases = aliases_of(&config);
    fields.extend(
        aliases.iter().map(|(model, names)| ("aliases", format!("{model}: {}", names.join(", ")))),
    );
    let refunds = &config.roles.support_refunds;
    fields.extend(
        refunds
            .iter()
            .map(|(currency, micros)| ("support refunds a day", format!("{micros} {currency}"))),
    );
    if let Some(DatabaseView { prices_known, prices_new, warnings }) = &database {
        let text = format!("accepts it: {prices_known} prices known, {prices_new} new");
        fields.push(("database", text));
        fields.extend(warnings.iter().map(|warning| ("warning", warning.clone())));
    }
    for probe in probes.iter().flatten() {
        fields.push(("probe", format!("{}: {}", probe.provider, probe.answer)));
    }
    fields.extend(routes.iter().flatten().map(|route| ("route", route.line())));
    // Without `--probe` both lists are empty: a file without mistakes is a success.
    let ok = probes.iter().flatten().all(|probe| probe.ok)
        && routes.iter().flatten().all(|route| route.ok);
    let support_refunds =
        refunds.iter().map(|(currency, micros)| (currency.to_string(), micros.get())).collect();
    let view = CheckView {
        ok,
        file,
        providers,
        models,
        mistakes: Vec::new(),
        warnings,
        fields: named,
        aliases,
        support_refunds,
        database,
        probes,
        routes,
    };
    output.object(&view, &fields)?;
    if ok { Ok(()) } else { Err(CommandFailure::Told(Status::Failed)) }
}

/// The models that have aliases, with those.
fn aliases_of(config: &Config) -> BTreeMap<String, Vec<String>> {
    let named = config.models.iter().filter(|model| !model.aliases.is_empty());
    let names = |model: &Model| model.aliases.iter().map(ToString::to_string).collect();
    named.map(|model| (model.contract.model.to_string(), names(model))).collect()
}

/// The models that accept or ignore any field.
fn fields_of(config: &Config) -> Vec<FieldsView> {
    let contracts = config.models.iter().map(|model| &model.contract);
    let named = contracts.filter(|it| !(it.accepts.is_empty() && it.ignores.is_empty()));
    let view = |contract: &Contract| FieldsView {
        model: contract.model.to_string(),
        accepts: contract.accepts.clone(),
        ignores: contract.ignores.iter().map(|field| field.label()).collect(),
    };
    named.map(view).collect()
}

/// Reports the mistakes of the configuration. With `--json` they go to standard output for a bad file too, with
/// the status of wrong usage.
fn refuse(
    output: Output,
    file: Option<&String>,
    failure: CommandFailure,
) -> Result<(), CommandFailure> {
    if !matches!(output, Output::Json) {
        return Err(failure);
    }
    let mistakes = match &failure {
        CommandFailure::Config(BadConfig::Mistakes(all)) => {
            all.iter().map(ToString::to_string).collect()
        }
        CommandFailure::Config(BadConfig::Unreadable(..)) | CommandFailure::Usage(_) => {
            failure.message().into_iter().collect()
        }
        CommandFailure::Failed(_) | CommandFailure::Told(_) | CommandFailure::NobodyReads => {
            return Err(failure);
        }
    };
    let view = CheckView {
        ok: false,
        file: file.cloned(),
        providers: 0,
        models: 0,
        mistakes,
        warnings: Vec::new(),
        fields: Vec::new(),
        aliases: BTreeMap::new(),
        support_refunds: BTreeMap::new(),
        database: None,
        probes: None,
        routes: None,
    };
    output.object(&view, &[])?;
    Err(CommandFailure::Told(Status::Usage))
}

/// Sends a probe to every provider, one after the other.
async fn probes(config: &Config) -> anyhow::Result<Vec<ProbeView>> {
    let mut views = Vec::new();
    for (name, kind) in &config.providers {
        let provider = name.clone();
        let about = || format!("provider {name}");
        views.push(match kind {
            ProviderKind::Simulated => {
                let answer = "built in, connects to no provider".to_owned();
                ProbeView { provider, ok: true, status: None, answer }
            }
            ProviderKind::Http(options) => {
                let client = client(options).with_context(about)?;
                let view = probe(provider, &client).await;
                match options.kind.chain().filter(|_kind| view.ok) {
                    Some(kind) => keys(view, &ChainProvider::new(name, client, *kind)).await,
                    None => view,
                }
            }
        });
    }
    Ok(views)
}

/// Reads from a gateway that was reached whether it keeps keys: only then is a request repeated there.
async fn keys(view: ProbeView, chain: &ChainProvider) -> ProbeView {
    let (ok, keys) = match chain.probe_keys().await {
        KeyUse::Required => (true, "keeps request keys: an interrupted request is repeated"),
        KeyUse::Ignored => (
            false,
            "does not require request keys: no request is repeated; check that it is a Holdfast",
        ),
        KeyUse::Unknown => (false, "did not report whether it keeps request keys: probe it again"),
    };
    ProbeView { ok, answer: format!("{}; it {keys}", view.answer), ..view }
}

async fn probe(provider: String, client: &HttpProvider) -> ProbeView {
    let (status, (ok, answer)) = match tokio::time::timeout(PROBE_TIMEOUT, client.probe()).await {
        Ok(Ok(status)) => {
            let status = status.as_u16();
            (Some(status), read(status, client.has_credential()))
        }
        // The outer errors report that a request failed, which is known; the innermost has the cause.
        Ok(Err(error)) => (None, (false, format!("not reached: {}", innermost(&error)))),
        Err(_elapsed) => {
            let seconds = PROBE_TIMEOUT.as_secs();
            (None, (false, format!("not reached: no answer within {seconds} s; check base_url")))
        }
    };
    ProbeView { provider, ok, status, answer }
}

/// Verdict on the HTTP status of a probe: success, and a sentence on what to check.
fn read(status: u16, has_key: bool) -> (bool, String) {
    let what = match status {
        200..=299 if has_key => "reached, and it takes the api_key".to_owned(),
        200..=299 => "reached, without an api_key".to_owned(),
        401 | 403 if has_key => format!("reached, but it refuses the api_key ({status}): check it"),
        401 | 403 => format!("reached, but it requires a credential ({status}): set api_key"),
        404 | 405 => format!(
            "reached, but it lists no models ({status}): check that base_url is the beginning of \
            its API, which most often ends in /v1"
        ),
        300..=399 => format!(
            "reached, but it points elsewhere ({status}), and that is not followed: check base_url"
        ),
        _ => format!("reached, but it does not work now ({status})"),
    };
    ((200..300).contains(&status), what)
}

/// The cause that names what happened. It is about our own attempt, never a text of the provider's.
fn innermost(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
