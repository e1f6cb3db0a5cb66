//! Configuration files for tests: valid from the start, varied one setting at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::Upstream;

/// Bearer token of the operator's listener.
pub const ADMIN_TOKEN: &str = "admin-token-of-the-tests";
/// The operator's credential at the upstream, which no caller may ever see.
pub const UPSTREAM_KEY: &str = "sk-upstream-secret-mark";
/// The upstream's own name of the model, which no caller may ever see.
pub const UPSTREAM_MODEL: &str = "upstream-model-mark";
/// The public name of the upstream's model.
pub const ACME: &str = "acme/large-1";
/// The public name of the simulated model.
pub const SIM: &str = "holdfast/sim-1";

/// The text of a configuration file.
#[derive(Debug, Clone, Default)]
pub struct Config {
    tables: BTreeMap<String, BTreeMap<String, String>>,
    models: String,
}

impl Config {
    /// The simulated provider under [`SIM`]: 2 micros a token in, 4 a token out.
    #[must_use]
    pub fn simulated() -> Self {
        Self::listening().set("providers.sim", "kind", "\"simulated\"").model(
            SIM,
            "sim",
            "sim-1",
            "input = 2_000_000, output = 4_000_000",
        )
    }

    /// A server that speaks OpenAI's dialect, under [`ACME`]: 2.5 micros a token in, 0.25 from the
    /// cache, 10 out, and 7 a request.
    #[must_use]
    pub fn upstream(upstream: &Upstream) -> Self {
        Self::at(&upstream.base_url())
    }

    /// The same server at some address.
    #[must_use]
    pub fn at(base_url: &str) -> Self {
        let rates = "input = 2_500_000, cached_input = 250_000, output = 10_000_000";
        Self::listening()
            .set("providers.acme", "kind", "\"openai\"")
            .set("providers.acme", "base_url", &format!("\"{base_url}\""))
            .set("providers.acme", "api_key", "\"${UPSTREAM_KEY}\"")
            .model(ACME, "acme", UPSTREAM_MODEL, rates)
    }

    fn listening() -> Self {
        Self::default()
            .set("server", "listen", "\"127.0.0.1:0\"")
            .set("server", "drain", "\"20s\"")
            .set("admin", "listen", "\"127.0.0.1:0\"")
            .set("admin", "token", &format!("\"{ADMIN_TOKEN}\""))
            .set("log", "level", "\"debug\"")
    }

    /// Adds a model with one price in USD and one route.
    #[must_use]
    pub fn model(mut self, id: &str, provider: &str, name: &str, rates: &str) -> Self {
        self.models.push_str(&format!(
            r#"
[[models]]
id = "{id}"
contract = 1
context_tokens = 8_000
max_output_tokens = 500
timeout = {{ connect = "2s", total = "60s" }}
[[models.prices]]
effective_from = 2026-01-01T00:00:00Z
currency = "USD"
micros_per_million = {{ {rates} }}
micros_each = {{ request = 7 }}
[[models.routes]]
provider = "{provider}"
model = "{name}"
"#
        ));
        self
    }

    /// Sets `key` of a table; the value is spelled as in TOML.
    #[must_use]
    pub fn set(mut self, table: &str, key: &str, value: &str) -> Self {
        self.tables.entry(table.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
        self
    }

    /// The model's calls may take this long in all.
    #[must_use]
    pub fn total(mut self, total: Duration) -> Self {
        let total = format!("total = \"{}ms\"", total.as_millis());
        self.models = self.models.replace("total = \"60s\"", &total);
        self
    }

    /// Replaces a text in the part of the models.
    #[must_use]
    pub fn replace(mut self, text: &str, by: &str) -> Self {
        assert!(self.models.contains(text), "there is no {text}");
        self.models = self.models.replace(text, by);
        self
    }

    /// The file.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (table, entries) in &self.tables {
            text.push_str(&format!("[{table}]\n"));
            for (key, value) in entries {
                text.push_str(&format!("{key} = {value}\n"));
            }
        }
        text + &self.models
    }
}
