//! Allow-lists: their bound, and lists from before it.

use std::collections::BTreeSet;

use super::*;
use crate::admin::actions::tests::{Book, judged};
use crate::admin::{AccountAction, ActorId, RequestBinding, WalletBounds};
use crate::model::ModelPattern;
use crate::{CommandKey, Timestamp};

const KEY: ApiKeyId = ApiKeyId::from_u128(1);
const WALLET: WalletId = WalletId::from_u128(2);

fn list(length: usize) -> BTreeSet<ModelPattern> {
    let id = |number| ModelPattern::try_from(format!("acme/{number}").as_str()).unwrap();
    (0..length).map(id).collect()
}

fn facts(models: usize) -> Book {
    let now = Timestamp::from_micros(1_000);
    let grant = Grant { models: Some(list(models)), ..Grant::default() };
    let name = "ci".to_owned();
    let new = NewApiKey { id: KEY, wallet: WALLET, name, external_id: None, grant };
    Book { api_key: Some(new.issued_at(now)), ..Book::at(now) }
}

fn edit(patch: ApiKeyPatch, facts: &Book) -> Result<(), AccountRefusal> {
    let request =
        RequestBinding { key: CommandKey::from_u128(1), digest: [0; 32], canonical: None };
    let (expected, is_bounded) = (None, false);
    let command = AccountCommand {
        is_after_restore: false,
        bounds: WalletBounds::DEFAULT,
        actor: ActorId::Local,
        address: None,
        request,
        reason: None,
        action: AccountAction::ApiKey(ApiKeyAction::Edit {
            api_key: KEY,
            wallet: WALLET,
            patch,
            expected,
            is_bounded,
        }),
    };
    judged(&command, facts).map(drop)
}

#[test]
fn an_allow_list_has_at_most_256_models_and_a_longer_one_stays() {
    let to = |length| ApiKeyPatch { models: Some(Some(list(length))), ..ApiKeyPatch::default() };
    let renamed = ApiKeyPatch { name: Some("other".to_owned()), ..ApiKeyPatch::default() };
    assert_eq!(edit(to(256), &facts(1)), Ok(()));
    assert_eq!(edit(to(257), &facts(1)), Err(AccountRefusal::TooManyModels(257)));
    let long = facts(300);
    assert_eq!(edit(renamed, &long), Ok(()));
    assert_eq!(edit(to(300), &long), Ok(()), "the list that it has");
    assert_eq!(edit(to(299), &long), Err(AccountRefusal::TooManyModels(299)));
    let all = ApiKeyPatch { models: Some(None), ..ApiKeyPatch::default() };
    assert_eq!(edit(all, &long), Ok(()));
}
