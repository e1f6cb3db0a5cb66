//! `[telemetry]` and the variables over it.

use holdfast_telemetry::traces::{ParentPolicy, Sampling};

use super::{LEAST, check_before};
use crate::config::parse;
use crate::telemetry::TelemetryConfig;
use crate::{BadConfig, Mistake, SecretUse};

const TABLE: &str = r#"[telemetry]
endpoint = "http://127.0.0.1:4318/"
ratio = 0.25
parents = "trust"
timeout = "2s"
headers = { x-key = "${HOLDFAST_SECRET}" }
resource = { "service.name" = "edge", "service.namespace" = "a" }
"#;
const ENDPOINT: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318");

fn read(table: &str, set: &[(&str, &str)]) -> Result<Option<TelemetryConfig>, BadConfig> {
    let environment = |name: &str| {
        let found = set.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned()).or_else(|| super::environment(name))
    };
    let config = parse("file", &format!("{table}\n{LEAST}"), &environment, SecretUse::All);
    config.map(|config| config.telemetry)
}

/// Endpoint, share and meaning of parents.
fn told(table: &str, set: &[(&str, &str)]) -> Option<(String, u64, ParentPolicy)> {
    let TelemetryConfig { traces_url, sampling, .. } = read(table, set).unwrap()?;
    let Sampling { ratio_millionths, parents } = sampling;
    Some((traces_url.join("").unwrap().to_string(), ratio_millionths, parents))
}

#[track_caller]
fn check_variable(name: &'static str, value: &str, expected: &str) {
    match read("", &[ENDPOINT, (name, value)]) {
        Err(BadConfig::Mistakes(mistakes)) => {
            let told: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
            assert_eq!(told.len(), 1, "{told:?}");
            assert!(told.iter().all(|it| it.contains(name) && it.contains(expected)), "{told:?}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn traces_are_off_until_there_is_an_endpoint() {
    assert_eq!(told("", &[]), None);
    assert_eq!(told("[telemetry]\nratio = 0.5", &[]), None);
    let usual = ("http://localhost:4318/v1/traces".to_owned(), 1_000_000, ParentPolicy::Link);
    assert_eq!(told("", &[("OTEL_TRACES_EXPORTER", "otlp")]), Some(usual));
    assert_eq!(told(TABLE, &[("OTEL_TRACES_EXPORTER", "none")]), None);
    assert_eq!(told(TABLE, &[("OTEL_SDK_DISABLED", "TRUE"), ENDPOINT]), None);
}

#[test]
fn a_table_is_read_and_variables_override_it() {
    let own = ("http://127.0.0.1:4318/v1/traces".to_owned(), 250_000, ParentPolicy::Trust);
    assert_eq!(told(TABLE, &[]), Some(own));
    let given = read(TABLE, &[]).unwrap().unwrap();
    assert_eq!(
        given.headers.get("x-key").unwrap().len(),
        "a secret that nobody may ever see".len()
    );
    assert!(!format!("{given:?}").contains("a secret"), "{given:?}");
    let exact = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://collector/spans");
    let sampler = ("OTEL_TRACES_SAMPLER", "traceidratio");
    let set = [ENDPOINT, exact, sampler, ("OTEL_TRACES_SAMPLER_ARG", "0.01")];
    let expected = ("https://collector/spans".to_owned(), 10_000, ParentPolicy::Link);
    assert_eq!(told(TABLE, &set), Some(expected));
    let set = [
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=1, b=two%20words"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=lost,service.version=x"),
        ("OTEL_SERVICE_NAME", "mine"),
    ];
    let given = read(TABLE, &set).unwrap().unwrap();
    let headers: Vec<_> = given.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((headers, given.timeout.as_millis()), (vec!["a", "b"], 1_500));
    let resource: Vec<_> = given.resource.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(resource, ["service.name=mine", "service.namespace=a", "service.version=x"]);
}

#[test]
fn samplers_have_the_standards_names() {
    for (name, ratio, parents) in [
        ("always_on", 1_000_000, ParentPolicy::Link),
        ("always_off", 0, ParentPolicy::Link),
        ("traceidratio", 1_000_000, ParentPolicy::Link),
        ("parentbased_always_on", 1_000_000, ParentPolicy::Trust),
        ("parentbased_always_off", 0, ParentPolicy::Trust),
        ("parentbased_traceidratio", 1_000_000, ParentPolicy::Trust),
    ] {
        let (_, is, are) = told("", &[ENDPOINT, ("OTEL_TRACES_SAMPLER", name)]).unwrap();
        assert_eq!((is, are), (ratio, parents), "{name}");
    }
}

#[test]
fn what_there_is_not_is_a_mistake_of_its_variable() {
    check_variable("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf");
    check_variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "http/protobuf");
    check_variable("OTEL_TRACES_EXPORTER", "zipkin", "otlp or none");
    check_variable("OTEL_TRACES_SAMPLER", "jaeger_remote", "traceidratio");
    check_variable("OTEL_EXPORTER_OTLP_HEADERS", "no pair", "NAME=VALUE");
    check_variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "a b=1", "not a header");
    check_variable("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "milliseconds");
    check_variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "ftp://collector", "http://HOST");
    check_variable("OTEL_RESOURCE_ATTRIBUTES", "a=%ff", "escapes");
}

#[test]
fn a_table_with_mistakes_is_told_by_its_lines() {
    check_before(
        "[telemetry]\nendpoint = \"http://user:word@collector\"",
        "file:2: `telemetry.endpoint` is not http://HOST or https://HOST, with a port or a path and \
         without a user name or a query",
    );
    check_before("[telemetry]\nratio = 2", "file:2: `telemetry.ratio` must be from 0.0 to 1.0");
    check_before(
        "[telemetry]\nparents = \"obey\"",
        "file:2: `telemetry.parents` is neither \"link\" nor \"trust\"",
    );
    check_before(
        "[telemetry.headers]\n\"a b\" = \"c\"",
        "file:2: `telemetry.headers.a b` is not a header: names are letters, digits and dashes, values \
         visible ASCII",
    );
}
