//! Settings on which the nodes of one database should agree, as one digest.
//!
//! Nodes whose models, prices, routes or limits differ answer the same request in different ways, or refuse on
//! one node what another one takes. So each node keeps a digest of its running settings in its row, and
//! administrators see that two differ. The digest does not show the difference: the files do.
//!
//! Left out is what is a node's own: its addresses and name, the log, traces, the listeners of administration and
//! nodes, the way to the database, proxies of its environment. Each part is spelled as the `Debug` of its
//! type, with all its fields; a build whose types have other fields has other digests.
//!
//! Never: the text of a secret, or its length. Only its presence counts. The digest is keyed, so that a reader
//! of the database can confirm no guess of the rest.

use std::collections::BTreeMap;
use std::fmt::Debug;

use holdfast_domain::secret::{SettingsDigest, SettingsKey};
use holdfast_engine::Model;
use holdfast_providers::ServerOptions;
use holdfast_providers::kinds::HttpOptions;

use crate::config::Config;
use crate::process::ServerConfig;
use crate::provider::ProviderKind;

impl Config {
    /// Digest of the settings on which the nodes of one database should agree.
    #[must_use]
    pub fn settings_digest(&self, key: &SettingsKey) -> SettingsDigest {
        key.digest(&self.shared_settings())
    }

    /// The settings that nodes share, spelled in one way. All fields are named: a new one has to be put in or
    /// left out.
    fn shared_settings(&self) -> String {
        let Self {
            file: _,
            stamp: _,
            exposure: _,
            literal_secrets: _,
            server,
            admin: _,
            console: _,
            node: _,
            database: _,
            requires_synchronous: _,
            limits,
            operations,
            routes,
            roles,
            retention,
            webhooks,
            log: _,
            telemetry: _,
            providers,
            models,
            price_places: _,
        } = self;
        let ServerConfig {
            listen: _,
            url: _,
            node: _,
            cell,
            secrets: _,
            drain,
            drain_delay,
            trusted_proxies,
            cors_origins,
        } = server;
        let mut text = String::new();
        add(&mut text, "server", &(drain, drain_delay, trusted_proxies, cors_origins));
        // Left out while it is unset, so that a node of an earlier release has the same digest.
        if let Some(cell) = cell {
            add(&mut text, "cell", cell);
        }
        add(&mut text, "limits", limits);
        add(&mut text, "operations", operations);
        add(&mut text, "routes", routes);
        add(&mut text, "roles", roles);
        add(&mut text, "retention", retention);
        add(&mut text, "webhooks", webhooks);
        for (name, kind) in providers {
            match kind {
                ProviderKind::Simulated => add(&mut text, "provider", &(name, "simulated")),
                ProviderKind::Http(options) => add(&mut text, "provider", &(name, shared(options))),
            }
        }
        for model in by_id(models).values() {
            add(&mut text, "model", model);
        }
        text
    }
}

/// The part of a provider's options that nodes share: no secret, and no property of the machine.
fn shared(HttpOptions { server, kind }: &HttpOptions) -> impl Debug + '_ {
    let ServerOptions {
        base_url,
        api_key,
        pool_idle,
        response_bytes_max,
        event_bytes_max,
        extra_roots: _,
        proxies: _,
        image_urls,
        key_header,
        own_addresses: _,
    } = server;
    let has_key = api_key.is_some();
    let lengths = (response_bytes_max, event_bytes_max);
    (base_url, has_key, pool_idle, lengths, image_urls, key_header, kind)
}

/// Models in one order, independent of the file's.
fn by_id(models: &[Model]) -> BTreeMap<&str, &Model> {
    models.iter().map(|model| (model.contract.model.as_str(), model)).collect()
}

fn add(text: &mut String, name: &str, settings: &dyn Debug) {
    // A line each: `Debug` of a text escapes the ends of its lines.
    text.push_str(&format!("{name} {settings:?}\n"));
}
