//! Third-party crates that only one crate of the product may use. `.cargo/deny.toml` has the same rule for the
//! whole graph; this check needs no tool that may be missing.

use super::Finding;
use crate::workspace::{DependencyKind, Package};

/// A crate of the first list is a normal dependency of the second list's only.
const BOUNDARIES: &[(&[&str], &[&str])] = &[
    (&["sea-orm", "libsqlite3-sys"], &["holdfast-store"]),
    (&["sqlx"], &["holdfast-bench", "holdfast-store"]),
    // The sidecar's journal is a file of its own, with only keys.
    (&["rusqlite"], &["holdfast-bench", "holdfast-sidecar", "holdfast-store"]),
    (
        &["hyper", "hyper-util"],
        &[
            "holdfast-bench",
            "holdfast-http",
            "holdfast-net",
            "holdfast-sidecar",
            "holdfast-tests",
            "holdfast-webhooks",
        ],
    ),
    // The clients are net's; a webhook must choose the address itself, which a pool does not, and the command line has
    // one server and no pool.
    (&["tokio-rustls"], &["holdfast-cli", "holdfast-net", "holdfast-webhooks"]),
    (&["clap"], &["holdfast", "holdfast-cli", "holdfast-tests", "xtask"]),
    (&["anyhow"], &["holdfast", "holdfast-bootstrap", "holdfast-cli", "holdfast-tests", "xtask"]),
    (&["argon2"], &["holdfast-accounts"]),
    (&["toml"], &["holdfast-config", "holdfast-tests", "xtask"]),
    (
        &["serde"],
        &["history-checker", "holdfast", "holdfast-admin", "holdfast-cli", "holdfast-wire"],
    ),
    (&["axum", "tower"], &["holdfast-admin", "holdfast-console"]),
    (&["utoipa", "utoipa-axum"], &["holdfast-admin"]),
    (&["askama"], &["holdfast-console"]),
    (&["opentelemetry-proto", "prost"], &["holdfast-telemetry"]),
];

/// Not even its tests may: the wire would freeze the domain.
const NEVER: &[(&str, &[&str])] = &[("holdfast-domain", &["serde", "serde_json"])];

/// Crates that came in by another way.
pub(crate) fn check(packages: &[Package]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            if is_closed(&package.name, name, dependency.kind) {
                let what = format_args!("depends on {name}, which boundaries.rs keeps from it");
                findings.push(Finding::new(&package.name, what));
            }
        }
    }
    findings
}

fn is_closed(package: &str, dependency: &str, kind: DependencyKind) -> bool {
    // For tests too, unlike the boundaries.
    let is_never = NEVER.iter().any(|(name, of)| *name == package && of.contains(&dependency));
    let boundary = BOUNDARIES.iter().find(|(behind, _)| behind.contains(&dependency));
    let is_outside = boundary.is_some_and(|(_, may)| !may.contains(&package));
    is_never || (kind == DependencyKind::Shipped && is_outside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Dependency;

    #[track_caller]
    fn check_pair(package: &str, dependency: &str, kind: DependencyKind, is_found: bool) {
        let dependencies = vec![Dependency { name: dependency.to_owned(), kind }];
        let package = Package { name: package.to_owned(), dependencies, examples: Vec::new() };
        assert_eq!(!check(&[package]).is_empty(), is_found);
    }

    #[test]
    fn only_the_store_knows_the_database() {
        check_pair("holdfast-store", "sea-orm", DependencyKind::Shipped, false);
        check_pair("holdfast", "sqlx", DependencyKind::Shipped, true);
    }

    #[test]
    fn only_the_edges_know_http() {
        check_pair("holdfast-http", "hyper", DependencyKind::Shipped, false);
        check_pair("holdfast-tests", "hyper", DependencyKind::Shipped, false);
        check_pair("holdfast-engine", "hyper", DependencyKind::Shipped, true);
        check_pair("holdfast-webhooks", "hyper", DependencyKind::Shipped, false);
        check_pair("holdfast-webhooks", "tokio-rustls", DependencyKind::Shipped, false);
        check_pair("holdfast-http", "tokio-rustls", DependencyKind::Shipped, true);
    }

    #[test]
    fn only_administration_has_a_router_and_it_has_no_socket() {
        check_pair("holdfast-admin", "axum", DependencyKind::Shipped, false);
        check_pair("holdfast-console", "axum", DependencyKind::Shipped, false);
        check_pair("holdfast-console", "hyper", DependencyKind::Shipped, true);
        check_pair("holdfast-admin", "askama", DependencyKind::Shipped, true);
        check_pair("holdfast-http", "axum", DependencyKind::Shipped, true);
        check_pair("holdfast-admin", "hyper", DependencyKind::Shipped, true);
    }

    #[test]
    fn only_the_process_knows_its_arguments() {
        check_pair("holdfast", "clap", DependencyKind::Shipped, false);
        check_pair("holdfast-engine", "toml", DependencyKind::Shipped, true);
    }

    #[test]
    fn tests_are_free_but_the_domain_never_knows_serde() {
        check_pair("holdfast-engine", "hyper", DependencyKind::Dev, false);
        check_pair("holdfast-domain", "serde_json", DependencyKind::Dev, true);
    }
}
