//! Answers under a cipher of the service.

use std::fs;
use std::sync::Arc;

use holdfast_domain::Micros;
use holdfast_domain::operation::Operation;
use holdfast_embed::{Sale, Seal};
use tempfile::TempDir;

use crate::shop::{PRICE, Shop, done};
use crate::sold;

/// A toy: every byte is moved by the key, and the first byte of an answer is the key's.
struct Shift(u8);

impl Seal for Shift {
    fn seal(&self, _operation: &Operation, _nonce: [u8; 12], answer: Vec<u8>) -> Vec<u8> {
        assert!(answer != b"break", "the cipher breaks");
        let moved = answer.into_iter().map(|byte| byte ^ self.0);
        std::iter::once(self.0).chain(moved).collect()
    }

    fn open(&self, _operation: &Operation, _nonce: [u8; 12], sealed: &[u8]) -> Option<Vec<u8>> {
        let rest = sealed.strip_prefix(&[self.0])?;
        Some(rest.iter().map(|byte| byte ^ self.0).collect())
    }
}

#[tokio::test]
async fn the_database_alone_shows_no_sealed_answer() {
    let shop = Shop::in_folder(TempDir::new().unwrap(), Arc::new(Shift(77))).await;
    let answer = "a purring sound of some length";
    assert_eq!(shop.sell(1, "cat", done(answer)).await.unwrap(), sold(answer, true));
    assert_eq!(shop.sell(1, "cat", done("")).await.unwrap(), sold(answer, false));
    let Shop { holdfast, folder, .. } = shop;
    holdfast.close().await.unwrap();
    let contains = |bytes: Vec<u8>| bytes.windows(answer.len()).any(|it| it == answer.as_bytes());
    for file in fs::read_dir(folder.path()).unwrap() {
        assert!(!contains(fs::read(file.unwrap().path()).unwrap()));
    }
    // Another cipher opens nothing, and the sale stays sold.
    let shop = Shop::in_folder(folder, Arc::new(Shift(78))).await;
    let unopened = Sale::Sold { answer: None, charge: Micros::new(PRICE), is_new: false };
    assert_eq!(shop.sell(1, "cat", done("")).await.unwrap(), unopened);
    shop.end_in_order().await;
}

#[tokio::test]
async fn a_cipher_that_breaks_loses_the_sale_and_costs_nothing() {
    let shop = Shop::in_folder(TempDir::new().unwrap(), Arc::new(Shift(77))).await;
    assert_eq!(shop.sell(1, "cat", done("break")).await.unwrap(), Sale::Lost);
    assert_eq!(shop.balance().await, (Micros::new(10_000_000), Micros::ZERO));
    shop.end_in_order().await;
}
