//! Layers: permitted dependencies, written down and compared with those of the manifests, both ways: an unused line
//! is a finding too, because it would permit a dependency that no one decided on.
//!
//! The table is the one picture of the architecture that cannot be outdated. A new line in it is a decision: the
//! domain depends on no crate, interfaces depend on use cases, and only the binary knows all of them.
//!
//! Crates from outside are judged for the domain only, by a list of their names. Only tests of the whole depend on the
//! gateway: a crate below it that did would reach every other one.

use super::Finding;
use crate::workspace::{DependencyKind, Package, THUMBNAILS};

/// Normal dependencies between workspace crates, all of them.
const LAYERS: &[(&str, &[&str])] = &[
    ("holdfast-domain", &[]),
    ("holdfast-accounts", &["holdfast-domain"]),
    ("holdfast-failpoint", &[]),
    ("holdfast-testkit", &["holdfast-domain"]),
    ("holdfast-wire", &["holdfast-domain"]),
    // Names, and spans of plain values: a counter needs no more.
    ("holdfast-telemetry", &[]),
    // Connections both ways, limits and timeouts: no route, no meaning of an answer.
    ("holdfast-net", &["holdfast-domain"]),
    // Signed documents about rows: pure, and below all that serve or keep them.
    ("holdfast-receipts", &["holdfast-domain", "holdfast-wire"]),
    ("holdfast-store", &["holdfast-domain", "holdfast-failpoint", "holdfast-receipts"]),
    (
        "holdfast-engine",
        &[
            "holdfast-domain",
            "holdfast-failpoint",
            // Only the memory of unknown credentials.
            "holdfast-net",
            "holdfast-telemetry",
            "holdfast-wire",
        ],
    ),
    ("holdfast-providers", &["holdfast-domain", "holdfast-net", "holdfast-wire"]),
    // No provider and no store: the owner of the rows hands over the deliveries.
    ("holdfast-webhooks", &["holdfast-domain", "holdfast-net", "holdfast-wire"]),
    (
        "holdfast-http",
        &[
            "holdfast-domain",
            "holdfast-engine",
            "holdfast-net",
            "holdfast-receipts",
            "holdfast-telemetry",
            "holdfast-wire",
        ],
    ),
    // A client of the gateway, without any code of the gateway itself.
    ("holdfast-sidecar", &["holdfast-net", "holdfast-wire"]),
    // Neither the store nor the engine: what administration does goes through the use cases.
    ("holdfast-admin", &["holdfast-accounts", "holdfast-domain", "holdfast-net", "holdfast-wire"]),
    // An interface as the API is, and not a client of it: their words for failures are the same.
    (
        "holdfast-console",
        &[
            "holdfast-accounts",
            "holdfast-admin",
            "holdfast-domain",
            "holdfast-net",
            "holdfast-wire",
        ],
    ),
    (
        "holdfast-config",
        &[
            "holdfast-admin",
            "holdfast-domain",
            "holdfast-engine",
            "holdfast-failpoint",
            "holdfast-http",
            "holdfast-net",
            "holdfast-providers",
            "holdfast-store",
            "holdfast-telemetry",
            "holdfast-wire",
        ],
    ),
    // Parts of an installation, opened in the same way by the process and by commands with direct database access.
    (
        "holdfast-bootstrap",
        &[
            "holdfast-accounts",
            "holdfast-config",
            "holdfast-domain",
            "holdfast-engine",
            "holdfast-providers",
            "holdfast-store",
            "holdfast-webhooks",
        ],
    ),
    // Sale of work in a process of another service: neither a configuration nor a listener.
    ("holdfast-embed", &["holdfast-domain", "holdfast-store"]),
    // A client of the administration, over the network or within its own process.
    (
        "holdfast-cli",
        &[
            "holdfast-accounts",
            "holdfast-admin",
            "holdfast-bootstrap",
            "holdfast-config",
            "holdfast-domain",
            "holdfast-engine",
            "holdfast-net",
            "holdfast-receipts",
            "holdfast-sidecar",
            "holdfast-store",
            "holdfast-wire",
        ],
    ),
    (
        GATEWAY,
        &[
            "holdfast-accounts",
            "holdfast-admin",
            "holdfast-bootstrap",
            "holdfast-cli",
            "holdfast-config",
            "holdfast-console",
            "holdfast-domain",
            "holdfast-engine",
            "holdfast-failpoint",
            "holdfast-http",
            "holdfast-net",
            "holdfast-providers",
            "holdfast-receipts",
            "holdfast-sidecar",
            "holdfast-store",
            "holdfast-telemetry",
            "holdfast-webhooks",
            "holdfast-wire",
        ],
    ),
    (
        "holdfast-bench",
        &["holdfast-domain", "holdfast-store", "holdfast-testkit", "holdfast-tests"],
    ),
    // Only the file of a history, and nothing of the product: else it would judge by what it should doubt.
    ("history-checker", &[]),
    ("holdfast-tests", &["history-checker"]),
    // The engine over the testkit's store: neither HTTP nor SQL.
    (
        "holdfast-simulation",
        &["holdfast-domain", "holdfast-engine", "holdfast-failpoint", "holdfast-testkit"],
    ),
    // Models in another language, and their run.
    ("specification", &[]),
    // What a service that embeds Holdfast needs.
    (THUMBNAILS, &["holdfast-domain", "holdfast-embed"]),
    ("xtask", &[]),
];

const DOMAIN: &str = "holdfast-domain";
const GATEWAY: &str = "holdfast";

/// Everything the domain may use from outside the workspace.
const DOMAIN_MAY_USE: &[&str] =
    &["async-trait", "blake3", "icu_normalizer", "icu_properties", "idna", "thiserror", "uuid"];

/// Dependencies for tests are free, except for one: only these packages test through the gateway.
const MAY_TEST_THE_GATEWAY: &[&str] = &["holdfast-tests", "xtask"];

/// Compares the tables with `packages`.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        let row = LAYERS.iter().find(|(name, _)| *name == package.name);
        match row {
            Some((_, allowed)) => {
                compare(package, &among(packages, package), allowed, &mut findings);
            }
            None => findings.push(Finding::new(&package.name, "is not in LAYERS")),
        }
        if package.name == DOMAIN {
            compare(package, &outside(packages, package), DOMAIN_MAY_USE, &mut findings);
        }
        let is_tester = MAY_TEST_THE_GATEWAY.contains(&package.name.as_str());
        if !is_tester && package.dependencies.iter().any(|it| it.name == GATEWAY) {
            findings.push(Finding::new(&package.name, "depends on the gateway"));
        }
    }
    // Both ways: a line for a crate that is gone would allow it to come back unnoticed.
    for (name, _) in LAYERS {
        if !packages.iter().any(|package| package.name == *name) {
            findings.push(Finding::new(name, "is in LAYERS and not in the workspace"));
        }
    }
    findings
}

fn compare(package: &Package, actual: &[&str], allowed: &[&str], findings: &mut Vec<Finding>) {
    for name in actual.iter().filter(|name| !allowed.contains(name)) {
        let what = format_args!("depends on {name}, which layers.rs does not allow");
        findings.push(Finding::new(&package.name, what));
    }
    for name in allowed.iter().filter(|name| !actual.contains(name)) {
        let what = format_args!("does not depend on {name} any more: remove it from layers.rs");
        findings.push(Finding::new(&package.name, what));
    }
}

fn among<'a>(packages: &[Package], package: &'a Package) -> Vec<&'a str> {
    shipped(package).filter(|name| is_ours(packages, name)).collect()
}

fn outside<'a>(packages: &[Package], package: &'a Package) -> Vec<&'a str> {
    shipped(package).filter(|name| !is_ours(packages, name)).collect()
}

fn shipped(package: &Package) -> impl Iterator<Item = &str> {
    let shipped = package.dependencies.iter().filter(|it| it.kind == DependencyKind::Shipped);
    shipped.map(|it| it.name.as_str())
}

fn is_ours(packages: &[Package], name: &str) -> bool {
    packages.iter().any(|package| package.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    /// The workspace exactly as in the tables.
    fn as_written() -> Vec<Package> {
        let rows = LAYERS.iter().map(|(name, allowed)| {
            let outside = if *name == DOMAIN { DOMAIN_MAY_USE } else { &[] };
            let names = allowed.iter().chain(outside);
            Package {
                name: (*name).to_owned(),
                dependencies: names.map(|name| dependency(name, DependencyKind::Shipped)).collect(),
                examples: Vec::new(),
            }
        });
        rows.collect()
    }

    fn dependency(name: &str, kind: DependencyKind) -> Dependency {
        Dependency { name: name.to_owned(), kind }
    }

    fn package<'a>(packages: &'a mut [Package], name: &str) -> &'a mut Package {
        packages.iter_mut().find(|package| package.name == name).unwrap()
    }

    #[track_caller]
    fn check_one(packages: &[Package], expected: &str) {
        let findings: Vec<String> = check(packages).iter().map(ToString::to_string).collect();
        assert_eq!(findings, [expected]);
    }

    #[test]
    fn what_is_written_passes() {
        assert_eq!(check(&as_written()), []);
    }

    #[test]
    fn a_new_edge_is_found() {
        let mut packages = as_written();
        let store = package(&mut packages, "holdfast-store");
        store.dependencies.push(dependency("holdfast-engine", DependencyKind::Shipped));
        check_one(
            &packages,
            "holdfast-store: depends on holdfast-engine, which layers.rs does not allow",
        );
    }

    #[test]
    fn an_edge_that_went_away_is_found() {
        let mut packages = as_written();
        package(&mut packages, "holdfast-wire").dependencies.clear();
        check_one(
            &packages,
            "holdfast-wire: does not depend on holdfast-domain any more: remove it from layers.rs",
        );
    }

    #[test]
    fn the_domain_is_held_to_its_list() {
        let mut packages = as_written();
        package(&mut packages, DOMAIN)
            .dependencies
            .push(dependency("tokio", DependencyKind::Shipped));
        check_one(&packages, "holdfast-domain: depends on tokio, which layers.rs does not allow");
        let mut packages = as_written();
        package(&mut packages, DOMAIN).dependencies.retain(|it| it.name != "uuid");
        check_one(
            &packages,
            "holdfast-domain: does not depend on uuid any more: remove it from layers.rs",
        );
    }

    #[test]
    fn tests_use_what_they_like_but_not_the_gateway() {
        let mut packages = as_written();
        let engine = package(&mut packages, "holdfast-engine");
        engine.dependencies.push(dependency("holdfast-testkit", DependencyKind::Dev));
        assert_eq!(check(&packages), []);
        let engine = package(&mut packages, "holdfast-engine");
        engine.dependencies.push(dependency(GATEWAY, DependencyKind::Dev));
        check_one(&packages, "holdfast-engine: depends on the gateway");
    }

    #[test]
    fn crates_come_and_go_with_the_table() {
        let mut packages = as_written();
        packages.retain(|package| package.name != "xtask");
        check_one(&packages, "xtask: is in LAYERS and not in the workspace");
        let mut packages = as_written();
        let (name, dependencies) = ("holdfast-extra".to_owned(), Vec::new());
        packages.push(Package { name, dependencies, examples: Vec::new() });
        check_one(&packages, "holdfast-extra: is not in LAYERS");
    }
}
