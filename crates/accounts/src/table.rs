//! The interfaces of each use case: its endpoint, and its command.
//!
//! Roles are the domain's ([`UseCase::roles`]). A use case without an endpoint or a command has the reason
//! here; tests of the API and of the command line compare [`INTERFACES`] with theirs, both ways.

use std::sync::LazyLock;

use holdfast_domain::admin::UseCase;

use crate::VERBS;

/// Interfaces of a use case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interfaces {
    /// The use case.
    pub use_case: UseCase,
    /// Method and path of each endpoint below `/admin/v1`.
    pub endpoints: Vec<(&'static str, String)>,
    /// Words of each command.
    pub commands: Vec<String>,
}

/// Every use case with its interfaces, in the order of use cases. Those of verbs follow from their rows.
pub static INTERFACES: LazyLock<Vec<Interfaces>> = LazyLock::new(|| {
    let rows = TABLE.iter().map(|row| Interfaces {
        use_case: row.use_case,
        endpoints: row
            .endpoints
            .iter()
            .map(|(method, path)| (*method, (*path).to_owned()))
            .collect(),
        commands: row.commands.iter().map(|words| (*words).to_owned()).collect(),
    });
    let verbs = VERBS.iter().map(|verb| Interfaces {
        use_case: verb.use_case,
        endpoints: vec![("POST", verb.endpoint())],
        commands: vec![verb.command()],
    });
    let mut interfaces: Vec<_> = rows.chain(verbs).collect();
    interfaces.sort_by_key(|row| row.use_case);
    interfaces
});

/// Interfaces of a use case that is not a verb.
struct Row {
    use_case: UseCase,
    endpoints: &'static [(&'static str, &'static str)],
    commands: &'static [&'static str],
}

const fn row(
    use_case: UseCase,
    endpoints: &'static [(&'static str, &'static str)],
    commands: &'static [&'static str],
) -> Row {
    Row { use_case, endpoints, commands }
}

/// The interfaces of every use case except the verbs.
const TABLE: &[Row] = &[
    row(UseCase::WalletCreate, &[("POST", "/wallets")], &["wallet create"]),
    row(
        UseCase::WalletRead,
        &[("GET", "/wallets"), ("GET", "/wallets/{id}")],
        &["wallet list", "wallet show"],
    ),
    row(UseCase::WalletUpdate, &[("PATCH", "/wallets/{id}")], &["wallet update"]),
    row(UseCase::WalletClose, &[("POST", "/wallets/{id}/close")], &["wallet close"]),
    row(UseCase::PostingDeposit, &[("POST", "/deposits")], &["wallet deposit"]),
    row(UseCase::PostingAdjust, &[("POST", "/adjustments")], &["wallet adjust"]),
    row(UseCase::PostingRefund, &[("POST", "/refunds")], &["wallet refund"]),
    row(
        UseCase::PostingRead,
        &[
            ("GET", "/deposits"),
            ("GET", "/deposits/{id}"),
            ("GET", "/adjustments"),
            ("GET", "/adjustments/{id}"),
            ("GET", "/refunds"),
            ("GET", "/refunds/{id}"),
        ],
        &["wallet posting", "posting list"],
    ),
    row(UseCase::ApiKeyIssue, &[("POST", "/api_keys"), ("POST", "/api_keys/bulk")], &["key issue"]),
    row(
        UseCase::ApiKeyRead,
        &[("GET", "/api_keys"), ("GET", "/api_keys/{id}")],
        &["key list", "key show"],
    ),
    row(UseCase::ApiKeyUpdate, &[("PATCH", "/api_keys/{id}")], &["key update"]),
    row(UseCase::ApiKeyRotate, &[("POST", "/api_keys/{id}/rotate")], &["key rotate"]),
    row(
        UseCase::OperationRead,
        &[("GET", "/operations"), ("GET", "/operations/{id}"), ("GET", "/held")],
        &["operation list", "operation show", "operation held"],
    ),
    row(UseCase::OperationCancel, &[("POST", "/operations/{id}/cancel")], &["operation cancel"]),
    row(
        UseCase::OperationReconcile,
        &[("POST", "/operations/{id}/reconcile")],
        &["operation reconcile"],
    ),
    row(
        UseCase::EventRead,
        &[("GET", "/events"), ("GET", "/events/{id}")],
        &["event list", "event show"],
    ),
    row(
        UseCase::RefusalRead,
        &[("GET", "/refusals"), ("GET", "/refusals/hours")],
        &["refusal list", "refusal hours"],
    ),
    row(UseCase::UsageRead, &[("GET", "/usage")], &["usage report"]),
    // Beside the database alone.
    row(UseCase::UsageExcludeCosts, &[], &["usage exclude-costs"]),
    row(
        UseCase::StatementRead,
        &[("GET", "/wallets/{id}/statement"), ("GET", "/ledger")],
        &["wallet ledger", "ledger export"],
    ),
    row(UseCase::ModelRead, &[("GET", "/models")], &["model list"]),
    row(UseCase::PriceRead, &[("GET", "/prices")], &["price list"]),
    row(UseCase::NodeRead, &[("GET", "/nodes")], &["node list"]),
    row(
        UseCase::RouteRead,
        &[("GET", "/routes"), ("GET", "/routes/history")],
        &["route list", "route show"],
    ),
    row(
        UseCase::RootRead,
        &[("GET", "/receipts/roots"), ("GET", "/operations/{id}/proof")],
        &["ledger roots", "operation proof"],
    ),
    row(
        UseCase::JobCreate,
        &[("POST", "/jobs"), ("POST", "/jobs/{id}/cancel")],
        &["ledger verify", "job cancel"],
    ),
    row(UseCase::JobRead, &[("GET", "/jobs"), ("GET", "/jobs/{id}")], &["job list", "job show"]),
    row(
        UseCase::AdminKeyRead,
        &[("GET", "/admin_keys"), ("GET", "/admin_keys/{id}")],
        &["admin-key list", "admin-key show"],
    ),
    row(UseCase::AuditRead, &[("GET", "/audit")], &["audit list"]),
    row(UseCase::AdminKeyIssue, &[("POST", "/admin_keys")], &["admin-key issue"]),
    row(UseCase::AdminKeyRotate, &[("POST", "/admin_keys/{id}/rotate")], &["admin-key rotate"]),
    row(UseCase::AdminKeyRevoke, &[("POST", "/admin_keys/{id}/revoke")], &["admin-key revoke"]),
    row(
        UseCase::PersonRead,
        &[("GET", "/people"), ("GET", "/people/{id}")],
        &["person list", "person show"],
    ),
    row(UseCase::PersonInvite, &[("POST", "/people")], &["person invite"]),
    row(UseCase::PersonLink, &[("POST", "/people/{id}/link")], &["person link"]),
    row(
        UseCase::PersonEnd,
        &[("POST", "/people/{id}/end"), ("POST", "/people/{id}/grants/end")],
        &["person end", "person revoke"],
    ),
    // What people do with a link and a password, in a browser: no role gives it, and no other door.
    row(UseCase::PersonAccept, &[], &[]),
    row(UseCase::PersonPassword, &[], &[]),
    // A client without a role does it.
    row(UseCase::PersonSignInFailed, &[], &[]),
    row(UseCase::WebhookCreate, &[("POST", "/webhooks")], &["webhook create"]),
    row(
        UseCase::WebhookRead,
        &[("GET", "/webhooks"), ("GET", "/webhooks/{id}"), ("GET", "/webhooks/{id}/deliveries")],
        &["webhook list", "webhook show", "webhook deliveries"],
    ),
    row(UseCase::WebhookUpdate, &[("PATCH", "/webhooks/{id}")], &["webhook update"]),
    row(UseCase::WebhookRotate, &[("POST", "/webhooks/{id}/rotate")], &["webhook rotate"]),
    row(UseCase::WebhookTest, &[("POST", "/webhooks/{id}/test")], &["webhook test"]),
    row(
        UseCase::WebhookResend,
        &[("POST", "/webhooks/{id}/deliveries/{event}/resend")],
        &["webhook resend"],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_use_case_has_one_row_and_no_door_has_two() {
        let rows: BTreeSet<_> = INTERFACES.iter().map(|row| row.use_case).collect();
        assert_eq!(rows.len(), INTERFACES.len());
        let missing: Vec<_> = UseCase::ALL.iter().filter(|it| !rows.contains(it)).collect();
        assert!(missing.is_empty(), "without doors: {missing:?}");
        let endpoints: Vec<_> = INTERFACES.iter().flat_map(|row| &row.endpoints).collect();
        assert_eq!(endpoints.iter().collect::<BTreeSet<_>>().len(), endpoints.len());
    }

    #[test]
    fn only_what_people_do_in_a_browser_has_neither_endpoint_nor_command() {
        let without = |is_shut: fn(&Interfaces) -> bool| {
            let interfaces = INTERFACES.iter().filter(|row| is_shut(row));
            interfaces.map(|row| row.use_case).collect::<Vec<_>>()
        };
        let own = [UseCase::PersonAccept, UseCase::PersonPassword, UseCase::PersonSignInFailed];
        // A correction of sums that a version before has made: beside the database alone.
        let mut none = without(|row| row.endpoints.is_empty());
        none.retain(|it| *it != UseCase::UsageExcludeCosts);
        assert_eq!(none, own);
        assert_eq!(without(|row| row.commands.is_empty()), own);
    }
}
