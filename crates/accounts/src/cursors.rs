//! Cursors of lists: the position at the end of a page, sealed.
//!
//! ```text
//! cursor = base64url( nonce (12) ‖ AES-256-GCM-SIV( place (8 bytes), list, filters, order, reach ) )
//! ```
//!
//! The place is the number of a row, and rows of all wallets share one sequence: in the clear it would count
//! other tenants' rows. The seal binds a cursor to its list, its filters, its order and the reach of its
//! reader. Elsewhere the cursor would skip rows silently, so it opens for no other list.
//!
//! The first server secret seals, and every listed one opens: a reader who keeps a cursor of the events for a
//! day goes on after a rotation. A process without a secret, such as a command that reads the database, has a
//! random key.
//!
//! Never in here: a page for a cursor that does not open. The first page in its place would repeat rows.

use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use holdfast_domain::admin::Reach;
use holdfast_domain::admin::listing::{Order, PageCursor, PageRequest};
use holdfast_domain::secret::{CursorKey, ServerSecret};
use uuid::Uuid;

use crate::{Accounts, AccountsError, Principal, Result, digest};

/// Bytes of a place.
const PLACE_LEN: usize = 8;
/// Characters of a cursor: 36 bytes.
const CURSOR_LEN: usize = 48;

/// Keys of cursors: the first one seals, all of them open.
#[derive(Debug, Clone)]
pub(crate) struct CursorKeys(Arc<[CursorKey]>);

impl CursorKeys {
    pub(crate) fn new(secrets: &[ServerSecret]) -> Self {
        if secrets.is_empty() {
            let random = [Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
            return Self(Arc::new([CursorKey::from_bytes(digest(&[&random]))]));
        }
        Self(secrets.iter().map(ServerSecret::cursor_key).collect())
    }
}

/// A list under filters, as one reader pages through it.
#[derive(Debug, Clone)]
pub struct PagedList {
    keys: CursorKeys,
    /// Digest of all that a cursor is bound to.
    bound_to: [u8; 32],
    order: Order,
}

/// Error of a cursor that does not open for a list: malformed, foreign, or of a secret that is not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor belongs to no page of this list under these filters")]
pub struct BadCursor;

impl Accounts {
    /// The list of this name and these filters, newest first, for this reader.
    #[must_use]
    pub fn paged_list(&self, reader: &Principal, name: &str, filters: &[u8]) -> PagedList {
        PagedList::new(self.cursor_keys.clone(), reader.reach, (name, filters), Order::Newest)
    }
}

const fn order_byte(order: Order) -> u8 {
    match order {
        Order::Newest => 0,
        Order::Oldest => 1,
    }
}

impl PagedList {
    fn new(keys: CursorKeys, reach: Reach, (name, filters): (&str, &[u8]), order: Order) -> Self {
        let wallet = match reach {
            Reach::All => Vec::new(),
            Reach::Wallet(wallet) => wallet.to_bytes().to_vec(),
        };
        let bound_to = digest(&[name.as_bytes(), filters, &[order_byte(order)], &wallet]);
        Self { keys, bound_to, order }
    }

    /// The page of so many rows after this cursor, or the first one without a cursor.
    ///
    /// # Errors
    ///
    /// [`BadCursor`].
    pub fn request(&self, limit: u32, cursor: Option<&str>) -> Result<PageRequest, BadCursor> {
        let after = cursor.map(|cursor| self.open(cursor).ok_or(BadCursor)).transpose()?;
        Ok(PageRequest { order: self.order, after, limit })
    }

    /// The cursor of the page after this place.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NoRandom`], if the system gives no nonce.
    pub fn cursor(&self, PageCursor(place): PageCursor) -> Result<String> {
        self.seal(place).map_err(|error| AccountsError::NoRandom(Box::new(error)))
    }

    fn seal(&self, place: i64) -> Result<String, aws_lc_rs::error::Unspecified> {
        let key = self.keys.0.first().ok_or(aws_lc_rs::error::Unspecified)?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce)?;
        let mut sealed = place.to_be_bytes().to_vec();
        cipher(key)?.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(self.bound_to),
            &mut sealed,
        )?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    fn open(&self, cursor: &str) -> Option<PageCursor> {
        if cursor.len() != CURSOR_LEN {
            return None;
        }
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE_LEN>()?;
        // A cursor does not name its key: a server has few secrets, and each fails at its tag.
        let place = self.keys.0.iter().find_map(|key| {
            let mut sealed = sealed.to_vec();
            let nonce = Nonce::assume_unique_for_key(*nonce);
            let place = cipher(key)
                .and_then(|cipher| {
                    cipher.open_in_place(nonce, Aad::from(self.bound_to), &mut sealed)
                })
                .ok()?;
            <[u8; PLACE_LEN]>::try_from(&*place).ok()
        })?;
        Some(PageCursor(i64::from_be_bytes(place)))
    }
}

fn cipher(key: &CursorKey) -> Result<LessSafeKey, aws_lc_rs::error::Unspecified> {
    UnboundKey::new(&AES_256_GCM_SIV, key.expose()).map(LessSafeKey::new)
}

#[cfg(test)]
mod tests {
    use holdfast_domain::WalletId;

    use super::*;

    fn keys(secrets: &[u8]) -> CursorKeys {
        let secret = |byte: &u8| ServerSecret::new(&[*byte; 32]).unwrap();
        CursorKeys::new(&secrets.iter().map(secret).collect::<Vec<_>>())
    }

    fn list(secrets: &[u8]) -> PagedList {
        PagedList::new(keys(secrets), Reach::All, ("events", b"{}"), Order::Newest)
    }

    #[test]
    fn a_cursor_opens_for_no_other_list_filters_order_or_reach() {
        let ours = list(&[1]);
        for place in [0, 1, -1, i64::MIN, i64::MAX] {
            let cursor = ours.cursor(PageCursor(place)).unwrap();
            assert_eq!(cursor.len(), CURSOR_LEN);
            assert_eq!(ours.request(9, Some(&cursor)).unwrap().after, Some(PageCursor(place)));
            let wallet = Reach::Wallet(WalletId::from_u128(1));
            for (reach, name, filters, order) in [
                (wallet, "events", &b"{}"[..], Order::Newest),
                (Reach::All, "audit", b"{}", Order::Newest),
                (Reach::All, "events", b"[]", Order::Newest),
                (Reach::All, "events", b"{}", Order::Oldest),
            ] {
                let other = PagedList::new(keys(&[1]), reach, (name, filters), order);
                assert_eq!(other.request(9, Some(&cursor)), Err(BadCursor), "{name} {order:?}");
            }
        }
        assert_eq!(ours.request(9, None).unwrap().after, None);
    }

    #[test]
    fn a_changed_cursor_opens_nothing() {
        let ours = list(&[1]);
        let [one, other] = [7, 7].map(|place| ours.cursor(PageCursor(place)).unwrap());
        assert_ne!(one, other, "two cursors of one place are unlike");
        for at in 0..one.len() {
            let mut changed = one.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(ours.request(9, Some(&changed)), Err(BadCursor), "{changed}");
        }
        for bad in
            ["", "7", "-1", "00000000000000070011223344556677", &one[1..], &format!("{one}=")]
        {
            assert_eq!(ours.request(9, Some(bad)), Err(BadCursor), "{bad}");
        }
    }

    #[test]
    fn a_cursor_outlives_a_rotation_while_its_secret_is_listed() {
        let cursor = list(&[1]).cursor(PageCursor(7)).unwrap();
        assert_eq!(list(&[2, 1]).request(9, Some(&cursor)).unwrap().after, Some(PageCursor(7)));
        assert_eq!(list(&[2]).request(9, Some(&cursor)), Err(BadCursor));
        // Without a secret each process has a key of its own.
        let cursor = list(&[]).cursor(PageCursor(7)).unwrap();
        assert_eq!(list(&[]).request(9, Some(&cursor)), Err(BadCursor));
    }
}
