//! Who may administer, and who is told: admin keys, people and webhooks that were changed by hand, where the audit log
//! says otherwise. Each rule is broken by one statement, and mended again.

use std::time::Duration;

use holdfast_domain::admin::{
    AccountAction, AdminCredential, AdminKeyAction, Authority, Reach, Role, WebhookAction,
    WebhookPatch,
};
use holdfast_testkit::laws::tenant::credential;
use holdfast_testkit::sample;

use super::broken::{BrokenRow, finds_each};
use crate::administration::{act, make_wallet, secret};
use crate::ended::owner_key;
use crate::people::{Desk, OWNER};
use crate::raw::Raw;
use crate::scratch::Home;
use crate::webhooks::new_webhook;

/// Tables that are broken, each before those whose rows belong to it.
const TABLES: [&str; 11] = [
    "admin_keys",
    "admin_credentials",
    "people",
    "person_grants",
    "person_links",
    "person_wallet_links",
    "person_invitations",
    "browser_marks",
    "person_passwords",
    "sessions",
    "webhooks",
];

/// Admin keys: one rotated, one revoked, and one whose name was issued anew. People: an owner, a viewer who is
/// offered a second role, one who lost their password, one whose role ended, one whose role ended
/// while another is offered, and one who was erased. Webhooks: one
/// that was edited and rotated, one disabled by a person, one by itself and one that was enabled after that.
async fn fill(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    let one = owner_key(store, "one").await;
    let credential = AdminCredential {
        id: sample::fresh(),
        admin_key: one,
        verifier: credential(sample::fresh()).verifier,
        server_secret: secret().id(),
        ends_at: None,
    };
    let grace = Duration::from_secs(60);
    act(store, AccountAction::AdminKey(AdminKeyAction::Rotate { credential, grace }))
        .await
        .unwrap();
    let two = owner_key(store, "two").await;
    act(store, AccountAction::AdminKey(AdminKeyAction::Revoke(two))).await.unwrap();
    let desk = Desk::of(home).await;
    let viewer = Authority { role: Role::HolderViewer, reach: Reach::Wallet(wallet) };
    let support = Authority { role: Role::Support, reach: Reach::All };
    desk.member("ada@example.com", OWNER).await;
    desk.member("bob@example.com", viewer).await;
    desk.invite(&desk.local, "bob@example.com", support).await.unwrap();
    let lost = desk.member("eve@example.com", support).await;
    desk.renew_link(lost).await;
    let ended = desk.member("dan@example.com", support).await;
    desk.renew_link(ended).await;
    desk.end_grant(&desk.local, ended, support).await.unwrap();
    // The last role ends while another is offered: the offer stays.
    let offered = desk.member("kim@example.com", viewer).await;
    desk.invite(&desk.local, "kim@example.com", support).await.unwrap();
    desk.end_grant(&desk.local, offered, viewer).await.unwrap();
    let erased = desk.member("joe@example.com", viewer).await;
    desk.end(erased, true).await.unwrap();
    for description in ["edited", "asked", "gone", "enabled"] {
        let record = new_webhook(Some(wallet), None);
        let id = record.id;
        let edit = WebhookPatch {
            description: Some(Some(description.to_owned())),
            ..WebhookPatch::default()
        };
        let edit = WebhookAction::Edit { webhook: id, patch: edit, expected: None };
        for action in [WebhookAction::Create(record), edit] {
            act(store, AccountAction::Webhook(action)).await.unwrap();
        }
        let then = match description {
            "edited" => WebhookAction::Rotate { webhook: id, server_secret: secret().id() },
            "asked" => WebhookAction::Disable(id),
            _ => {
                // As deliveries do it, without a row of the audit log.
                let by_itself = format!(
                    "UPDATE webhooks SET disabled_at = 7, disabled_reason = 'gone',
                     edited = edited + 1 WHERE description = '{description}'"
                );
                Raw::open(home).await.run(&by_itself).await;
                if description == "gone" {
                    continue;
                }
                WebhookAction::Enable(id)
            }
        };
        act(store, AccountAction::Webhook(then)).await.unwrap();
    }
}

/// Names of the statements below, and what they stand for.
const NAMES: [(&str, &str); 8] = [
    ("<id>", "zeroblob(16)"),
    ("<nobody>", "person:00000000-0000-0000-0000-000000000007"),
    ("<key>", "(SELECT k.id FROM admin_keys AS k WHERE k.name = 'one')"),
    ("<grant>", "INSERT INTO person_grants (person_id, role, granted_at, granted_by)"),
    ("<ada>", "(SELECT p.id FROM people AS p WHERE p.email = 'ada@example.com')"),
    ("<bob>", "(SELECT p.id FROM people AS p WHERE p.email = 'bob@example.com')"),
    ("<eve>", "(SELECT p.id FROM people AS p WHERE p.email = 'eve@example.com')"),
    ("<dan>", "(SELECT p.id FROM people AS p WHERE p.email = 'dan@example.com')"),
];

/// Statements, and what is said of whom.
const BROKEN: &[BrokenRow] = &[
    (
        "INSERT INTO admin_keys (id, name, role, created_at, created_by)
     VALUES (<id>, 'mine', 'owner', 7, 'local')",
        "admin key",
        "no row of the audit log made it",
    ),
    (
        "UPDATE admin_keys SET created_at = 7 WHERE id = <key>",
        "admin key",
        "it was made at 7 by local, row 2 of the audit log has",
    ),
    (
        "UPDATE admin_keys SET created_by = '<nobody>' WHERE id = <key>",
        "admin key",
        "row 2 of the audit log has at",
    ),
    (
        "UPDATE admin_keys SET name = 'another' WHERE id = <key>",
        "admin key",
        "its name is another, row 2 of the audit log has one",
    ),
    (
        "UPDATE admin_keys SET role = 'auditor' WHERE id = <key>",
        "admin key",
        "its role is auditor, row 2 of the audit log has owner",
    ),
    (
        "UPDATE admin_keys SET wallet_id = (SELECT id FROM wallets) WHERE id = <key>",
        "admin key",
        "row 2 of the audit log has none",
    ),
    (
        "UPDATE admin_keys SET ends_at = 7 WHERE id = <key>",
        "admin key",
        "its ends_at is 7, row 2 of the audit log has none",
    ),
    (
        "UPDATE admin_keys SET revoked_at = NULL WHERE name = 'two'",
        "admin key",
        "its revoked_at is none",
    ),
    (
        "UPDATE admin_keys SET role = 'king' WHERE id = <key>",
        "admin key",
        "its row cannot be read",
    ),
    (
        "DELETE FROM admin_keys WHERE id = <key>",
        "admin key",
        "row 2 of the audit log names it, and it does not exist",
    ),
    (
        "INSERT INTO admin_credentials SELECT <id>, admin_key_id, verifier, server_secret, created_at, NULL
     FROM admin_credentials WHERE admin_key_id = <key> AND ends_at IS NULL",
        "admin key",
        "no row of the audit log made its credential",
    ),
    (
        "INSERT INTO admin_credentials SELECT <id>, admin_key_id, verifier, server_secret, created_at, ends_at
     FROM admin_credentials WHERE admin_key_id = <key> AND ends_at IS NOT NULL",
        "admin key",
        "no row of the audit log made its credential",
    ),
    (
        "UPDATE admin_credentials SET created_at = 7 WHERE admin_key_id = <key> AND ends_at IS NULL",
        "admin key",
        "no row of the audit log made its credential",
    ),
    (
        "DELETE FROM admin_credentials WHERE admin_key_id = <key> AND ends_at IS NULL",
        "admin key",
        "it has 1 credentials, rows of the audit log made 2",
    ),
    (
        "UPDATE admin_credentials SET ends_at = NULL",
        "admin key",
        "ends never, the audit log has",
    ),
    (
        "UPDATE admin_credentials SET verifier = zeroblob(31)",
        "the ledger",
        "credentials belong to no admin key, or can be none",
    ),
    (
        "UPDATE admin_credentials SET server_secret = zeroblob(7)",
        "the ledger",
        "credentials belong to no admin key, or can be none",
    ),
    (
        "UPDATE admin_credentials SET admin_key_id = <id> WHERE admin_key_id = <key>",
        "the ledger",
        "credentials belong to no admin key, or can be none",
    ),
    (
        "INSERT INTO people (id, created_at, created_by) VALUES (<id>, 7, 'local')",
        "person",
        "no row of the audit log made it",
    ),
    (
        "UPDATE people SET ended_at = NULL WHERE email IS NULL",
        "person",
        "its ended_at is none",
    ),
    (
        "UPDATE people SET created_at = 7 WHERE id = <ada>",
        "person",
        "it was made at 7",
    ),
    (
        "UPDATE people SET email = 'nobody' WHERE id = <ada>",
        "person",
        "its row cannot be read",
    ),
    (
        "DELETE FROM people WHERE id = <ada>",
        "person",
        "of the audit log names it, and it does not exist",
    ),
    (
        "<grant> VALUES (<bob>, 'owner', 7, 'local')",
        "person",
        "no row of the audit log gave it the role owner",
    ),
    (
        "<grant> VALUES (<dan>, 'support', 7, 'local')",
        "person",
        "no row of the audit log gave it the role support",
    ),
    (
        "<grant> VALUES (<ada>, 'king', 7, 'local')",
        "person",
        "its row cannot be read",
    ),
    (
        "UPDATE person_grants SET granted_at = 7 WHERE person_id = <ada>",
        "person",
        "it has had the role owner since 7 by local, the audit log has since",
    ),
    (
        "UPDATE person_grants SET granted_by = '<nobody>' WHERE person_id = <ada>",
        "person",
        "by local",
    ),
    (
        "DELETE FROM person_grants WHERE person_id = <ada>",
        "person",
        "its role owner is gone, the audit log never ended it",
    ),
    (
        "INSERT INTO person_passwords SELECT <eve>, hash, 7 FROM person_passwords
     WHERE person_id = <ada>",
        "person",
        "its password was set at 7, the audit log has never",
    ),
    (
        "UPDATE person_passwords SET set_at = 7 WHERE person_id = <ada>",
        "person",
        "its password was set at 7, the audit log has",
    ),
    (
        "DELETE FROM person_passwords WHERE person_id = <ada>",
        "person",
        "its password was set at never",
    ),
    (
        "UPDATE person_links SET role = 'owner' WHERE person_id = <bob>",
        "person",
        "is not as the audit log has it",
    ),
    (
        "UPDATE person_links SET used_at = NULL WHERE person_id = <ada>",
        "person",
        "is not as the audit log has it",
    ),
    (
        "UPDATE person_links SET expires_at = 7 WHERE person_id = <bob>",
        "person",
        "is not as the audit log has it",
    ),
    (
        "UPDATE person_links SET id = <id> WHERE person_id = <bob>",
        "person",
        "is not as the audit log has it",
    ),
    (
        "UPDATE person_links SET created_by = '<nobody>' WHERE person_id = <bob>",
        "person",
        "is not as the audit log has it",
    ),
    (
        "UPDATE person_links SET person_id = <dan> WHERE person_id = <eve>",
        "person",
        "is not as the audit log has it",
    ),
    (
        "DELETE FROM person_links WHERE person_id = <eve>",
        "person",
        "is gone",
    ),
    (
        "UPDATE person_wallet_links SET role = 'holder_admin' WHERE person_id = <bob>",
        "person",
        "is not as the audit log has it",
    ),
    (
        "DELETE FROM person_wallet_links WHERE person_id = <bob>",
        "person",
        "is gone",
    ),
    (
        "UPDATE person_links SET purpose = 'take' WHERE person_id = <bob>",
        "person",
        "its row cannot be read",
    ),
    (
        "<grant> VALUES (<id>, 'owner', 7, 'local')",
        "the ledger",
        "1 person grants have no owner",
    ),
    (
        "UPDATE person_links SET person_id = <id> WHERE person_id = <bob>",
        "the ledger",
        "1 person links have no owner",
    ),
    (
        "UPDATE person_passwords SET person_id = <id> WHERE person_id = <bob>",
        "the ledger",
        "1 person passwords have no owner",
    ),
    (
        "INSERT INTO sessions (id, person_id, token, role, created_at, last_seen_at, signed_in_at, address)
         VALUES (<id>, <id>, zeroblob(32), 'owner', 7, 7, 7, '192.0.2.1')",
        "the ledger",
        "1 sessions have no owner",
    ),
    (
        "INSERT INTO webhooks SELECT 99, <id>, wallet_id, url, kinds, 'mine', generation, rotated_at,
     server_secret, previous_secret, edited, created_at, created_by, disabled_at, disabled_reason,
     dead_in_a_row FROM webhooks WHERE description = 'edited'",
        "webhook",
        "no row of the audit log made it",
    ),
    (
        "UPDATE webhooks SET created_at = 7 WHERE description = 'edited'",
        "webhook",
        "it was made at 7",
    ),
    (
        "UPDATE webhooks SET wallet_id = NULL WHERE description = 'edited'",
        "webhook",
        "its wallet_id is none",
    ),
    (
        "UPDATE webhooks SET url = 'https://thief.example.com/' WHERE description = 'edited'",
        "webhook",
        "its url_origin is https://thief.example.com",
    ),
    (
        "UPDATE webhooks SET url = url || '2' WHERE description = 'edited'",
        "webhook",
        "its url_digest is",
    ),
    (
        "UPDATE webhooks SET kinds = 'wallet.low' WHERE description = 'edited'",
        "webhook",
        "its kinds is wallet.low, row",
    ),
    (
        "UPDATE webhooks SET description = 'other' WHERE description = 'edited'",
        "webhook",
        "its description is other, row",
    ),
    (
        "UPDATE webhooks SET generation = 3 WHERE description = 'edited'",
        "webhook",
        "its generation is 3, row",
    ),
    (
        "UPDATE webhooks SET disabled_at = NULL, disabled_reason = NULL WHERE description = 'asked'",
        "webhook",
        "its disabled_at is none, row",
    ),
    (
        "UPDATE webhooks SET disabled_reason = 'gone' WHERE description = 'asked'",
        "webhook",
        "its disabled_reason is gone, row",
    ),
    (
        "UPDATE webhooks SET disabled_at = 7, disabled_reason = 'asked' WHERE description = 'enabled'",
        "webhook",
        "its disabled_at is 7, row",
    ),
    (
        "UPDATE webhooks SET server_secret = zeroblob(3) WHERE description = 'edited'",
        "webhook",
        "its row cannot be read",
    ),
    (
        "DELETE FROM webhooks WHERE description = 'edited'",
        "webhook",
        "of the audit log names it, and it does not exist",
    ),
];

async fn each_row_that_was_changed_by_hand_is_found(home: &impl Home) {
    fill(home).await;
    finds_each(home, &TABLES, &NAMES, BROKEN).await;
}

crate::scratch::on_every_store! {
    each_row_that_was_changed_by_hand_is_found,
}
