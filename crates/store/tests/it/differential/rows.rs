//! Everything that the ports show of a store at the end of a history, without its clock.

use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::operation::{Node, SealedResult};
use holdfast_domain::ports::{HeartbeatOutcome, LeaseMode, LedgerEntry};
use holdfast_domain::secret::{ServerSecretId, Verifier};
use holdfast_domain::{ApiKeyId, CredentialId, Incarnation};

use super::history::{History, nodes};
use super::player::Player;

/// Each kind of row by its name.
pub(super) async fn read(player: &Player<'_>, history: &History) -> Vec<(&'static str, String)> {
    let stores = player.stores;
    let mut operations = Vec::new();
    let mut results = Vec::new();
    for id in History::operations() {
        let snapshot = stores.journal().load(id).await.unwrap();
        let lease = snapshot.lease.map(|lease| player.placed_lease(lease));
        operations.push((snapshot.operation.map(|row| player.placed(row)), lease));
        let bytes = |it: SealedResult| (it.credential, it.format, it.nonce, it.sealed);
        results.push((id, snapshot.result.map(bytes)));
    }
    let wallets = stores.lists().unwrap().all_wallets().await;
    let mut transfers = Vec::new();
    for wallet in &wallets {
        let entries = stores.wallets().transfers(wallet.id, u32::MAX).await.unwrap();
        let placed =
            entries.into_iter().map(|entry| LedgerEntry { at: player.place(entry.at), ..entry });
        transfers.push((wallet.id, placed.collect::<Vec<_>>()));
    }
    let mut postings = Vec::new();
    for id in &history.postings {
        postings.push(stores.wallets().posting(*id).await.unwrap());
    }
    let keys = stores.keys().unwrap();
    let placed = |key: ApiKey| ApiKey {
        created_at: player.place(key.created_at),
        revoked_at: key.revoked_at.map(|at| player.place(at)),
        ..key
    };
    let api_keys: Vec<_> =
        stores.lists().unwrap().all_api_keys().await.into_iter().map(placed).collect();
    let mut credentials = Vec::new();
    for key in (11..20).map(ApiKeyId::from_u128) {
        let known = keys.credential(credential_of(key).id).await.unwrap();
        credentials.push(known.map(|known| {
            let ends_at = known.credential.ends_at.map(|at| player.place(at));
            (Credential { ends_at, ..known.credential }, placed(known.api_key))
        }));
    }
    let mut rows_of_nodes = Vec::new();
    for node in nodes() {
        // Somebody who never had the name is shown its row.
        let stranger = Node { incarnation: Incarnation::from_u128(99), ..node };
        let beat =
            stores.nodes().heartbeat(&stranger, std::time::Duration::ZERO, LeaseMode::Renew).await;
        let HeartbeatOutcome::Lost { lease, .. } = beat.unwrap() else { continue };
        rows_of_nodes.push(lease.map(|lease| player.placed_lease(lease)));
    }
    vec![
        ("operations", format!("{operations:#?}")),
        ("results", format!("{results:?}")),
        ("wallets", format!("{wallets:#?}")),
        ("transfers", format!("{transfers:#?}")),
        ("postings", format!("{postings:#?}")),
        ("API keys", format!("{api_keys:#?}")),
        ("credentials", format!("{credentials:#?}")),
        ("nodes", format!("{rows_of_nodes:#?}")),
    ]
}

/// The one credential of an API key.
pub(super) fn credential_of(api_key: ApiKeyId) -> Credential {
    Credential {
        id: CredentialId::from_bytes(api_key.to_bytes()),
        api_key,
        verifier: Verifier::from_bytes([3; 32]),
        server_secret: ServerSecretId::from_bytes([1; 8]),
        ends_at: None,
    }
}
