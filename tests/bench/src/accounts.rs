//! Many wallets on a database server, each with an API key: copies of one account, made by SQL, under ids and
//! names of their own. The book still adds up.

use holdfast_domain::CredentialId;
use holdfast_domain::credential::Bearer;
use holdfast_tests::Account;
use holdfast_tests::postgres::Database;

/// The id of a copy: `i` is its number.
const ID: &str = "decode(lpad(to_hex(i), 32, '0'), 'hex')";

/// Copies the only account of this database until there are so many; all their credentials.
pub(crate) fn copy(database: &Database, account: &Account, count: u64) -> Vec<String> {
    let numbers = format!("generate_series(1, {}) AS i", count - 1);
    drop(database.execute(&format!(
        "BEGIN;
         INSERT INTO wallets (id, name, currency, available, held, created_at)
         SELECT {ID}, name || i, currency, available, held, created_at FROM wallets, {numbers};
         INSERT INTO postings (id, wallet_id, kind, amount, created_at)
         SELECT {ID}, {ID}, kind, amount, created_at FROM postings, {numbers};
         INSERT INTO api_keys (id, wallet_id, name, balance, created_at)
         SELECT {ID}, {ID}, name || i, balance, created_at FROM api_keys, {numbers};
         INSERT INTO credentials (id, api_key_id, verifier, server_secret, created_at, ends_at)
         SELECT {ID}, {ID}, verifier, server_secret, created_at, ends_at FROM credentials, {numbers};
         COMMIT"
    )));
    // What a credential is known by is made of its secret, and not of its id.
    let bearer = Bearer::parse(&account.key).expect("a credential");
    let copies = (1..count).map(|number| {
        let id = CredentialId::from_u128(number.into());
        Bearer { id, secret: bearer.secret.clone() }.expose()
    });
    std::iter::once(account.key.clone()).chain(copies).collect()
}
