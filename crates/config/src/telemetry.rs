//! `[telemetry]`: the endpoint of traces, their share, and the meaning of a caller's trace. Off without an
//! endpoint.
//!
//! The standard's own variables override the file, as elsewhere the environment does:
//!
//! | variable | sets |
//! |---|---|
//! | `OTEL_SDK_DISABLED` | `true`: off, even if the others are set |
//! | `OTEL_TRACES_EXPORTER` | `none`: off; `otlp`: on, also without an endpoint |
//! | `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`, `OTEL_EXPORTER_OTLP_PROTOCOL` | only `http/protobuf` |
//! | `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_EXPORTER_OTLP_ENDPOINT` | the URL as it is; the start of one |
//! | `OTEL_EXPORTER_OTLP_TRACES_HEADERS`, `OTEL_EXPORTER_OTLP_HEADERS` | `headers`, one list for all of the file's |
//! | `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT`, `OTEL_EXPORTER_OTLP_TIMEOUT` | `timeout`, in milliseconds |
//! | `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | `ratio` and `parents` |
//! | `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | `resource`, added to the file's |
//!
//! The first of two names counts. A command that does not serve looks at none of this.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use holdfast_net::BaseUrl;
use holdfast_telemetry::traces::{ParentPolicy, Sampling};
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use crate::document::{ConfigTable, Document, Field};
use crate::environment::{Environment, overriding};
use crate::value::parse_millionths;

const PROTOCOL: &str = "http/protobuf";
/// Endpoint of a collector on this machine, at the port of the standard.
const USUAL_ENDPOINT: &str = "http://localhost:4318";
const PATH: &str = "/v1/traces";
const TIMEOUT: Duration = Duration::from_secs(10);
const TIMEOUT_MAX: Duration = Duration::from_secs(60);
const ALL: u64 = 1_000_000;

/// `[telemetry]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TelemetryConfig {
    /// Address that spans are posted to.
    pub traces_url: BaseUrl,
    /// Headers of each request there; their values never print.
    pub headers: HeaderMap,
    /// Time for one request.
    pub timeout: Duration,
    pub sampling: Sampling,
    /// Attributes of this process, beside those that it knows of itself.
    pub resource: BTreeMap<String, String>,
}

/// Settings that were read so far.
struct Settings {
    url: Option<BaseUrl>,
    headers: HeaderMap,
    timeout: Duration,
    sampling: Sampling,
    resource: BTreeMap<String, String>,
}

/// Reads the table, then the variables over it; `None` if traces are off.
pub(crate) fn telemetry(
    document: &Document<'_>,
    table: &ConfigTable<'_>,
    environment: Environment<'_>,
) -> Option<TelemetryConfig> {
    if !document.is_served() {
        table.ignore_unknown();
        return None;
    }
    let mut settings = of_table(table);
    let variables = Variables { document, environment };
    // After the table: its mistakes are found even if its traces are off.
    if variables.is_off() {
        return None;
    }
    variables.refuse_protocol();
    variables.set(&mut settings);
    let Settings { url, headers, timeout, sampling, resource } = settings;
    Some(TelemetryConfig { traces_url: url?, headers, timeout, sampling, resource })
}

fn of_table(table: &ConfigTable<'_>) -> Settings {
    let parents = table.field("parents").and_then(|field| {
        field.parse(|text| match text {
            "link" => Ok(ParentPolicy::Link),
            "trust" => Ok(ParentPolicy::Trust),
            _other => Err("neither \"link\" nor \"trust\""),
        })
    });
    let ratio = table.field("ratio").and_then(|field| field.millionths(0..=ALL));
    let timeout =
        table.field("timeout").and_then(|field| field.span(Duration::from_millis(1)..=TIMEOUT_MAX));
    let settings = Settings {
        url: table.field("endpoint").and_then(|field| field.parse(below)),
        headers: headers(&table.table("headers")),
        timeout: timeout.unwrap_or(TIMEOUT),
        sampling: Sampling {
            ratio_millionths: ratio.unwrap_or(ALL),
            parents: parents.unwrap_or(ParentPolicy::Link),
        },
        resource: resource(&table.table("resource")),
    };
    table.refuse_unknown();
    settings
}

fn headers(table: &ConfigTable<'_>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, field) in table.named_fields() {
        let Some(secret) = field.secret() else { continue };
        match header(name, secret.expose()) {
            Ok((name, value)) => drop(headers.insert(name, value)),
            Err(error) => field.mistake(format_args!("is {error}")),
        }
    }
    headers
}

fn resource(table: &ConfigTable<'_>) -> BTreeMap<String, String> {
    let text = |(name, field): (&str, Field<'_>)| Some((name.to_owned(), field.text()?.to_owned()));
    table.named_fields().into_iter().filter_map(text).collect()
}

/// Failure to read a setting; its text goes on from the setting's name, and never has the value.
#[derive(Debug, Clone, Copy)]
struct Bad(&'static str);

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Address of the traces below an endpoint.
fn below(endpoint: &str) -> Result<BaseUrl, Bad> {
    exactly(&format!("{}{PATH}", endpoint.trim_end_matches('/')))
}

fn exactly(url: &str) -> Result<BaseUrl, Bad> {
    BaseUrl::try_from(url).map_err(|_reason| {
        Bad("not http://HOST or https://HOST, with a port or a path and without a user name or a query")
    })
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Bad> {
    let bad = Bad("not a header: names are letters, digits and dashes, values visible ASCII");
    let name = HeaderName::try_from(name).map_err(|_reason| bad)?;
    let mut value = HeaderValue::try_from(value).map_err(|_reason| bad)?;
    // It may be a credential: `Debug` of the headers leaves it out.
    value.set_sensitive(true);
    Ok((name, value))
}

/// Pairs of a list such as `a=1,b=two%20words`.
fn pairs(list: &str) -> Result<Vec<(String, String)>, Bad> {
    let bad = Bad("not a list like NAME=VALUE,NAME=VALUE, with % escapes");
    let items = list.split(',').map(str::trim).filter(|item| !item.is_empty());
    let pair = |item: &str| {
        let (name, value) = item.split_once('=').ok_or(bad)?;
        let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_reason| bad)?;
        Ok((name.trim().to_owned(), value.into_owned()))
    };
    items.map(pair).collect()
}

/// The standard's variables.
struct Variables<'v> {
    document: &'v Document<'v>,
    environment: Environment<'v>,
}

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        overriding(self.environment, name)
    }

    /// The first of these that is set.
    fn first<const N: usize>(&self, names: [&'static str; N]) -> Option<(&'static str, String)> {
        names.into_iter().find_map(|name| Some((name, self.get(name)?)))
    }

    /// Takes the first of these that is set by `read`, whose error is a mistake of that variable.
    fn read<const N: usize, T>(
        &self,
        names: [&'static str; N],
        read: impl FnOnce(&str) -> Result<T, Bad>,
    ) -> Option<T> {
        let (name, text) = self.first(names)?;
        match read(&text) {
            Ok(value) => Some(value),
            Err(error) => {
                self.document.mistake_in_variable(name, error);
                None
            }
        }
    }

    fn is_off(&self) -> bool {
        let is = |name, value: &str| {
            self.get(name).is_some_and(|given| given.trim().eq_ignore_ascii_case(value))
        };
        is("OTEL_SDK_DISABLED", "true") || is("OTEL_TRACES_EXPORTER", "none")
    }

    fn refuse_protocol(&self) {
        let names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"];
        let only = |protocol: &str| {
            let why = "a protocol that traces are not exported by: set http/protobuf, and the endpoint of the \
                       collector's OTLP over HTTP, which often has port 4318";
            (protocol == PROTOCOL).then_some(()).ok_or(Bad(why))
        };
        self.read(names, only);
    }

    fn set(&self, settings: &mut Settings) {
        let is_on = self.read(["OTEL_TRACES_EXPORTER"], |exporter| match exporter {
            "otlp" => Ok(()),
            _other => Err(Bad("an exporter that there is not: set otlp or none")),
        });
        let exact = self.read(["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"], exactly);
        let url = exact.or_else(|| self.read(["OTEL_EXPORTER_OTLP_ENDPOINT"], below));
        settings.url = url.or_else(|| settings.url.take());
        if is_on.is_some() && settings.url.is_none() {
            settings.url = below(USUAL_ENDPOINT).ok();
        }
        let names = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"];
        let listed = self.read(names, |list| {
            pairs(list)?.iter().map(|(name, value)| header(name, value)).collect()
        });
        settings.headers = listed.unwrap_or_else(|| std::mem::take(&mut settings.headers));
        let names = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"];
        let timeout = self.read(names, |millis| {
            let time = millis.parse().ok().map(Duration::from_millis);
            let fits = time.filter(|time| !time.is_zero() && *time <= TIMEOUT_MAX);
            fits.ok_or(Bad("not a number of milliseconds from 1 to 60000"))
        });
        settings.timeout = timeout.unwrap_or(settings.timeout);
        self.set_sampling(&mut settings.sampling);
        let listed = self.read(["OTEL_RESOURCE_ATTRIBUTES"], pairs).unwrap_or_default();
        settings.resource.extend(listed);
        if let Some(name) = self.get("OTEL_SERVICE_NAME") {
            settings.resource.insert("service.name".to_owned(), name);
        }
    }

    /// Sets the sampling by the standard's names; one that is based on a parent's trusts it.
    fn set_sampling(&self, sampling: &mut Sampling) {
        let ratio = || {
            let bad = Bad("not a share from 0 to 1, like 0.01");
            let read = |text: &str| parse_millionths(text).filter(|it| *it <= ALL).ok_or(bad);
            self.read(["OTEL_TRACES_SAMPLER_ARG"], read).unwrap_or(ALL)
        };
        let chosen = self.read(["OTEL_TRACES_SAMPLER"], |name| {
            let (parents, of) = match name.strip_prefix("parentbased_") {
                Some(of) => (ParentPolicy::Trust, of),
                None => (ParentPolicy::Link, name),
            };
            let ratio_millionths = match of {
                "always_on" => ALL,
                "always_off" => 0,
                "traceidratio" => ratio(),
                _other => {
                    return Err(Bad(
                        "a sampler that there is not: set always_on, always_off or traceidratio, or one of \
                         them with parentbased_ before it",
                    ));
                }
            };
            Ok(Sampling { ratio_millionths, parents })
        });
        *sampling = chosen.unwrap_or(*sampling);
    }
}
