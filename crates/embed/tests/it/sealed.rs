//! Answers under a cipher of the service.

use std::fs;
use std::sync::Arc;

use holdfast_domain::Micros;
use holdfast_domain::operation::Operation;
use holdfast_embed::{Options, Sale, Seal};

use crate::home::Home;
use crate::shop::{PRICE, Shop, done};
use crate::sold;

/// A toy: every byte is moved by the key and the nonce, and the first byte of an answer is the key's.
struct Shift(u8);

impl Shift {
    /// Another byte whatever the nonce is: the key has a bit that no low half has.
    fn moved(&self, nonce: [u8; 12], byte: u8) -> u8 {
        byte ^ self.0 ^ (nonce[0] & 0x0f)
    }
}

impl Seal for Shift {
    fn seal(&self, _operation: &Operation, nonce: [u8; 12], answer: Vec<u8>) -> Vec<u8> {
        assert!(answer != b"break", "the cipher breaks");
        let moved = answer.into_iter().map(|byte| self.moved(nonce, byte));
        std::iter::once(self.0).chain(moved).collect()
    }

    fn open(&self, _operation: &Operation, nonce: [u8; 12], sealed: &[u8]) -> Option<Vec<u8>> {
        let rest = sealed.strip_prefix(&[self.0])?;
        Some(rest.iter().map(|byte| self.moved(nonce, *byte)).collect())
    }
}

on_both! {
    a_cipher_that_breaks_loses_the_sale_and_costs_nothing,
    another_cipher_opens_nothing_and_the_sale_stays_sold,
}

#[tokio::test]
async fn the_database_alone_shows_no_sealed_answer() {
    let shop = Shop::sealed(Home::file(), Shift(77)).await;
    let answer = "a purring sound of some length";
    assert_eq!(shop.sell(1, "cat", done(answer)).await.unwrap(), sold(answer, true));
    let Shop { holdfast, home, .. } = shop;
    holdfast.close().await.unwrap();
    assert!(!shows(&home, answer));
    let shop = Shop::open(Home::file()).await;
    assert_eq!(shop.sell(1, "cat", done(answer)).await.unwrap(), sold(answer, true));
    let Shop { holdfast, home, .. } = shop;
    holdfast.close().await.unwrap();
    assert!(shows(&home, answer), "without a cipher the database shows it");
}

/// True if a file of the database has these bytes.
fn shows(home: &Home, answer: &str) -> bool {
    let mut files = fs::read_dir(home.folder().unwrap()).unwrap();
    files.any(|file| {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        bytes.windows(answer.len()).any(|it| it == answer.as_bytes())
    })
}

async fn another_cipher_opens_nothing_and_the_sale_stays_sold(home: Home) {
    let shop = Shop::sealed(home, Shift(77)).await;
    assert_eq!(shop.sell(1, "cat", done("meow")).await.unwrap(), sold("meow", true));
    assert_eq!(shop.sell(1, "cat", done("")).await.unwrap(), sold("meow", false));
    let other = Options { seal: Arc::new(Shift(78)), ..Options::default() };
    let shop = shop.again_with(other).await;
    let unopened = Sale::Sold { answer: None, charge: Micros::new(PRICE), is_new: false };
    assert_eq!(shop.sell(1, "cat", done("")).await.unwrap(), unopened);
    shop.end_in_order().await;
}

async fn a_cipher_that_breaks_loses_the_sale_and_costs_nothing(home: Home) {
    let shop = Shop::sealed(home, Shift(77)).await;
    assert_eq!(shop.sell(1, "cat", done("break")).await.unwrap(), Sale::Lost);
    assert_eq!(shop.balance().await, (Micros::new(10_000_000), Micros::ZERO));
    shop.end_in_order().await;
}
