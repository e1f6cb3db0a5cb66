//! Comparison of two configurations, for a reload: settings that a running process can take,
//! settings that it keeps until it is started again, and changes that the operator probably did not
//! mean.
//!
//! A new setting belongs in exactly one of two lists: `change_to`, and then `take` must assign it, or
//! `kept_against`, and then `take` must leave it. The gateway replaces its parts; no part is replaced here.

use std::collections::BTreeMap;

use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_engine::Model;

use crate::config::Config;
use crate::process::LimitsConfig;

/// The difference between the running configuration and the file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// Models that are new.
    pub added: Vec<String>,
    /// Models that are gone.
    pub removed: Vec<String>,
    /// Models with another contract, price, time-out, limit or route.
    pub changed: Vec<String>,
    /// Everything else that is taken.
    pub taken: Vec<String>,
    /// Settings that keep their value until the process is started again.
    pub kept: Vec<&'static str>,
    /// Models that make other promises under the same contract version.
    pub same_contract: Vec<(PublicModelId, u32)>,
}

impl Change {
    /// True if no list of replaceable settings has an entry: a reload would replace no part.
    pub fn is_nothing(&self) -> bool {
        [&self.added, &self.removed, &self.changed, &self.taken].iter().all(|list| list.is_empty())
    }
}

impl Config {
    /// The difference from this configuration, which runs, to `other`, which the file has now.
    pub fn change_to(&self, other: &Self) -> Change {
        let mut change = Change { kept: self.kept_against(other), ..Change::default() };
        self.compare_models(other, &mut change);
        // Both sets of names: a provider that was added and one that was removed are changes too. A
        // name in both comes twice, hence the look at `taken`.
        for name in self.providers.keys().chain(other.providers.keys()) {
            let setting = format!("providers.{name}");
            if self.providers.get(name) != other.providers.get(name)
                && !change.taken.contains(&setting)
            {
                change.taken.push(setting);
            }
        }
        // All of them: the compiler reports one that is not compared below as an unused variable.
        let LimitsConfig {
            header_bytes,
            body_bytes,
            header_time,
            body_time,
            idle_time,
            write_time,
            connections,
            connections_per_address,
            body_bytes_in_memory,
            commit_queue: _,
            answer_bytes,
            operations_per_key,
            waiters_per_operation,
            retry_wait,
            result_bytes: _,
            result_bytes_per_key: _,
        } = &self.limits;
        let others = &other.limits;
        for (setting, differs) in [
            ("limits.header_bytes", *header_bytes != others.header_bytes),
            ("limits.body_bytes", *body_bytes != others.body_bytes),
            ("limits.header_time", *header_time != others.header_time),
            ("limits.body_time", *body_time != others.body_time),
            ("limits.idle_time", *idle_time != others.idle_time),
            ("limits.write_time", *write_time != others.write_time),
            ("limits.connections", *connections != others.connections),
            (
                "limits.connections_per_address",
                *connections_per_address != others.connections_per_address,
            ),
            ("limits.body_bytes_in_memory", *body_bytes_in_memory != others.body_bytes_in_memory),
            ("limits.answer_bytes", *answer_bytes != others.answer_bytes),
            ("limits.operations_per_key", *operations_per_key != others.operations_per_key),
            (
                "limits.waiters_per_operation",
                *waiters_per_operation != others.waiters_per_operation,
            ),
            ("limits.retry_wait", *retry_wait != others.retry_wait),
            ("routes", self.routes != other.routes),
            ("server.cors_origins", self.server.cors_origins != other.server.cors_origins),
            ("retention.results", self.retention.results != other.retention.results),
            ("webhooks.allow", self.webhooks.allow != other.webhooks.allow),
            ("retention.events", self.retention.events != other.retention.events),
            ("retention.statistics", self.retention.statistics != other.retention.statistics),
            ("log.level", self.log.level != other.log.level),
        ] {
            if differs {
                change.taken.push(setting.to_owned());
            }
        }
        change
    }

    /// Takes what a running process can take from `other`, and keeps the rest.
    pub fn take(&mut self, other: Self) {
        // The store and the engine were given these three at the start, and do not take others.
        let LimitsConfig { commit_queue, result_bytes, result_bytes_per_key, .. } = self.limits;
        let kept =
            LimitsConfig { commit_queue, result_bytes, result_bytes_per_key, ..other.limits };
        self.limits = kept;
        self.routes = other.routes;
        self.retention = other.retention;
        self.server.cors_origins = other.server.cors_origins;
        self.webhooks = other.webhooks;
        self.log.level = other.log.level;
        self.providers = other.providers;
        self.models = other.models;
        self.price_places = other.price_places;
    }

    /// Names of the settings that are fixed for the life of a process, whatever the file has.
    #[must_use]
    pub fn kept_settings(&self) -> Vec<&'static str> {
        self.fixed(self).into_iter().map(|(name, _differs)| name).collect()
    }

    /// Names of the settings that differ and are fixed for the life of a process.
    fn kept_against(&self, other: &Self) -> Vec<&'static str> {
        let settings = self.fixed(other).into_iter();
        settings.filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    /// Settings that are fixed for the life of a process, each with whether it differs: sockets that are bound, the
    /// database that is open, secrets that sign, sizes that the store and the engine were given.
    fn fixed(&self, other: &Self) -> [(&'static str, bool); 22] {
        [
            ("server.listen", self.server.listen != other.server.listen),
            ("server.node", self.server.node != other.server.node),
            ("server.cell", self.server.cell != other.server.cell),
            ("server.secrets", self.server.secrets != other.server.secrets),
            ("server.drain", self.server.drain != other.server.drain),
            ("server.drain_delay", self.server.drain_delay != other.server.drain_delay),
            ("server.trusted_proxies", self.server.trusted_proxies != other.server.trusted_proxies),
            ("server.url", self.server.url != other.server.url),
            ("admin", self.admin != other.admin),
            ("console", self.console != other.console),
            ("roles", self.roles != other.roles),
            ("node", self.node != other.node),
            ("database.url", self.database != other.database),
            (
                "database.require_synchronous",
                self.requires_synchronous != other.requires_synchronous,
            ),
            ("limits.commit_queue", self.limits.commit_queue != other.limits.commit_queue),
            ("limits.result_bytes", self.limits.result_bytes != other.limits.result_bytes),
            (
                "limits.result_bytes_per_key",
                self.limits.result_bytes_per_key != other.limits.result_bytes_per_key,
            ),
            ("operations.lease", self.operations.lease != other.operations.lease),
            ("operations.heartbeat", self.operations.heartbeat != other.operations.heartbeat),
            (
                "operations.orphan_grace",
                self.operations.orphan_grace != other.operations.orphan_grace,
            ),
            ("telemetry", self.telemetry != other.telemetry),
            ("log.format", self.log.format != other.log.format),
        ]
    }

    fn compare_models(&self, other: &Self, change: &mut Change) {
        let (before, after) = (by_id(&self.models), by_id(&other.models));
        for (id, model) in &after {
            match before.get(id) {
                None => change.added.push(id.to_string()),
                Some(old) if old != model => {
                    change.changed.push(id.to_string());
                    // Callers pin a version and trust its limits: other limits under it are worth a
                    // warning.
                    if old.contract.version == model.contract.version
                        && promises(&old.contract) != promises(&model.contract)
                    {
                        change.same_contract.push(((*id).clone(), model.contract.version));
                    }
                }
                Some(_) => {}
            }
        }
        let gone = before.keys().filter(|id| !after.contains_key(*id));
        change.removed.extend(gone.map(ToString::to_string));
    }
}

fn by_id(models: &[Model]) -> BTreeMap<&PublicModelId, &Model> {
    models.iter().map(|model| (&model.contract.model, model)).collect()
}

/// The part of a contract that callers see: its limits and the fields that it accepts and ignores. The
/// other fields only bound holds, and may change under the same version.
fn promises(contract: &Contract) -> impl PartialEq + '_ {
    let Contract { context_tokens, max_output_tokens, accepts, allow, ignores, .. } = contract;
    (*context_tokens, *max_output_tokens, accepts, allow, ignores)
}
