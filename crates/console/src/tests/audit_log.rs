//! The audit log as people read it: a sentence for each action, with names and decimal amounts.

use holdfast_accounts::{Edit, KeyOrder, PostingOrder, Principal, Reference};
use holdfast_domain::Micros;
use holdfast_domain::admin::{ApiKeyPatch, DepositReference, PostingDetails, WalletPatch};
use holdfast_domain::credential::Grant;
use holdfast_domain::limits::{SpendLimit, SpendWindow};
use uuid::Uuid;

use crate::tests::world::{World, reference, request};

/// Sentences of the page, the newest first, without their markup.
async fn sentences(world: &World, address: &str) -> Vec<String> {
    let reply = world.get(&world.owner, address).await;
    let entries = reply.is(200).body.split("<li><time").skip(1);
    let sentence = |entry: &str| {
        let sentence = entry.split_once("<p>").unwrap().1.split_once("</p>").unwrap().0;
        let mut pieces = sentence.split('<');
        let first = pieces.next().unwrap().to_owned();
        pieces.fold(first, |text, piece| text + piece.split_once('>').unwrap().1)
    };
    entries.map(sentence).collect()
}

#[tokio::test]
async fn changes_of_a_customer_are_sentences_with_names_and_decimal_amounts() {
    let world = World::new().await;
    let wallet = world.wallet("acme & sons", 0).await.wallet.id;
    let (local, id) = (Principal::local(), reference(wallet));
    let order = |micros, details| {
        let amount = Micros::new(micros);
        PostingOrder { amount, currency: None, details }
    };
    let paid = DepositReference::new("stripe", "pi_3Nv");
    let details = PostingDetails { reference: Some(paid), ..PostingDetails::default() };
    world.accounts.deposit(&local, &request(), &id, order(100_000_000, details)).await.unwrap();
    let patch =
        WalletPatch { low_balance: Some(Some(Micros::new(5_000_000))), ..WalletPatch::default() };
    let edit = Edit { patch, expected: None };
    world.accounts.edit_wallet(&local, &request(), &id, edit).await.unwrap();
    let name = Some("production".parse().unwrap());
    let new = KeyOrder { name, external_id: None, grant: Grant::default() };
    let issued = world.accounts.issue_api_keys(&local, &request(), &id, &[new]).await.unwrap();
    let key = issued.thing[0].api_key.id;
    let spend = SpendLimit { micros: Micros::new(2_500_000), window: SpendWindow::Day };
    let patch = ApiKeyPatch { spend: Some(Some(spend)), ..ApiKeyPatch::default() };
    let edit = Edit { patch, expected: None };
    let reference = Reference::Id(Uuid::from_bytes(key.to_bytes()));
    world.accounts.edit_api_key(&local, &request(), &reference, edit).await.unwrap();
    assert_eq!(
        sentences(&world, "/trail").await,
        [
            "The command line changed API key production: spend none → 2.50 USD, spend window none → day",
            "The command line issued API key production for acme &#38; sons",
            "The command line changed wallet acme &#38; sons: low balance none → 5.00 USD",
            "The command line deposited 100.00 USD to acme &#38; sons, stripe pi_3Nv",
            "The command line created wallet acme &#38; sons in USD",
        ]
    );
    let shown = world.get(&world.owner, "/trail").await;
    shown.has("amount_micros: 100000000").has("<summary>Values</summary>").has("a test");
}
