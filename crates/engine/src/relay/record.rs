//! The records of a relay: events, whole or in pieces, pings, and the end mark. Each is sealed by its number, so
//! that none can be left out, repeated or moved. Each is padded, so that its length does not reveal that of a
//! token. A reader holds at most one record and one event.
//!
//! | of a record | bytes |
//! |---|---|
//! | length of the sealed part, largest byte first | 4 |
//! | sealed: its kind | 1 |
//! | sealed: length of its payload, largest byte first | 4 |
//! | sealed: its payload, and zeros up to a multiple of 256 | 256 n − 5 |
//! | sealed: the cipher's tag | 16 |

use aws_lc_rs::aead::{AES_256_GCM_SIV, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use bytes::{Buf, Bytes, BytesMut};
use holdfast_domain::secret::RelayKey;

/// Bytes that one record carries, at most.
const CARRIED_MAX: usize = 16 << 10;
/// Bytes of the longest event that is relayed. A longer one ends the relay, and comes with the
/// row's answer.
pub(super) const EVENT_MAX: usize = 64 << 10;
/// Unit in bytes to which records are padded, without their tag.
const PADDED: usize = 256;
/// Bytes of a record's head under its seal: kind, and length of the content.
const HEAD: usize = 1 + LENGTH;

const LENGTH: usize = size_of::<u32>();

/// Kind: part of an event, with more to come.
const PIECE: u8 = 0;
/// Kind: the last part of an event.
const EVENT: u8 = 1;
/// Kind: end of the relay, after the last event.
const END: u8 = 2;
/// Kind: sign of life from the node of a silent run.
const PING: u8 = 3;

/// Defect of a record, after which the relay is not read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadRecord {
    /// Not sealed under this relay's key and the next number, or of an unknown kind.
    #[error("a record that is not the next one of this relay")]
    Foreign,
    /// Longer than a record or an event may be.
    #[error("a record or an event that is too long")]
    TooLong,
}

/// Opened record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    /// Whole event, with its framing.
    Event(Bytes),
    /// End of the relay.
    End,
    /// Sign of life.
    Ping,
}

/// Cipher of a relay, with the number of its next record.
struct Cipher {
    key: LessSafeKey,
    number: u64,
}

impl Cipher {
    fn new(key: &RelayKey) -> Result<Self, Unspecified> {
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM_SIV, key.expose())?);
        Ok(Self { key, number: 0 })
    }

    /// Nonce of the next record: its number, so that no two under one key are equal.
    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        // Numbers may begin at zero for each relay: its key is of the nonces of both nodes, and no other has it.
        if let Some(low) = nonce.last_chunk_mut() {
            *low = self.number.to_be_bytes();
        }
        self.number = self.number.wrapping_add(1);
        Nonce::assume_unique_for_key(nonce)
    }
}

/// Sealer of the records of one relay, in their order.
pub(super) struct Sealer(Cipher);

impl Sealer {
    /// # Errors
    ///
    /// The cipher's.
    pub(super) fn new(key: &RelayKey) -> Result<Self, Unspecified> {
        Cipher::new(key).map(Self)
    }

    /// Seals an event, as one record or several.
    pub(super) fn event(&mut self, event: &[u8]) -> Result<Bytes, Unspecified> {
        let mut records = Vec::with_capacity(event.len() + 2 * PADDED);
        let mut rest = event;
        while let Some((piece, after)) = rest.split_at_checked(CARRIED_MAX) {
            // The last piece of a full record is the event, not a piece before an empty one.
            if after.is_empty() {
                break;
            }
            self.record(PIECE, piece, &mut records)?;
            rest = after;
        }
        self.record(EVENT, rest, &mut records)?;
        Ok(records.into())
    }

    /// Seals the end.
    pub(super) fn end(&mut self) -> Result<Bytes, Unspecified> {
        self.empty(END)
    }

    /// Seals a ping.
    pub(super) fn ping(&mut self) -> Result<Bytes, Unspecified> {
        self.empty(PING)
    }

    fn empty(&mut self, kind: u8) -> Result<Bytes, Unspecified> {
        let mut record = Vec::new();
        self.record(kind, &[], &mut record)?;
        Ok(record.into())
    }

    fn record(&mut self, kind: u8, carried: &[u8], to: &mut Vec<u8>) -> Result<(), Unspecified> {
        let length = (HEAD + carried.len()).next_multiple_of(PADDED);
        let mut sealed = Vec::with_capacity(length + AES_256_GCM_SIV.tag_len());
        sealed.push(kind);
        sealed.extend(length_of(carried)?);
        sealed.extend_from_slice(carried);
        // A length reveals much of a text that comes token by token: all short events look alike.
        sealed.resize(length, 0);
        let nonce = self.0.nonce();
        self.0.key.seal_in_place_append_tag(nonce, Aad::empty(), &mut sealed)?;
        to.extend(length_of(&sealed)?);
        to.append(&mut sealed);
        Ok(())
    }
}

fn length_of(bytes: &[u8]) -> Result<[u8; LENGTH], Unspecified> {
    u32::try_from(bytes.len()).map(u32::to_be_bytes).map_err(|_too_long| Unspecified)
}

/// Opener of records, out of bytes that come in pieces of any size.
pub(super) struct Opener {
    cipher: Cipher,
    read: BytesMut,
    event: BytesMut,
}

impl Opener {
    /// # Errors
    ///
    /// The cipher's.
    pub(super) fn new(key: &RelayKey) -> Result<Self, Unspecified> {
        Ok(Self { cipher: Cipher::new(key)?, read: BytesMut::new(), event: BytesMut::new() })
    }

    /// Buffers bytes that have come.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.read.extend_from_slice(bytes);
    }

    /// Opens the next event, end or ping; `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// [`BadRecord`]: no further byte of this relay is trusted.
    pub(super) fn next(&mut self) -> Result<Option<Record>, BadRecord> {
        while let Some(mut record) = self.record()? {
            let nonce = self.cipher.nonce();
            let opened = self.cipher.key.open_in_place(nonce, Aad::empty(), &mut record);
            let opened = opened.ok().and_then(|opened| opened.split_first());
            let (kind, padded) = opened.ok_or(BadRecord::Foreign)?;
            let (length, padded) = padded.split_first_chunk().ok_or(BadRecord::Foreign)?;
            let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
            let carried = padded.get(..length).ok_or(BadRecord::Foreign)?;
            // Before it is kept: the sender decides how many pieces come, and not how much is held here.
            if self.event.len() + carried.len() > EVENT_MAX {
                return Err(BadRecord::TooLong);
            }
            self.event.extend_from_slice(carried);
            match *kind {
                PIECE => {}
                EVENT => return Ok(Some(Record::Event(self.event.split().freeze()))),
                END => return Ok(Some(Record::End)),
                PING => return Ok(Some(Record::Ping)),
                4..=u8::MAX => return Err(BadRecord::Foreign),
            }
        }
        Ok(None)
    }

    /// Takes the next whole record off the buffer, still sealed.
    fn record(&mut self) -> Result<Option<BytesMut>, BadRecord> {
        let Some(length) = self.read.first_chunk() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        // The length is not sealed: it is believed no further than one record, or bytes would be gathered for ever.
        if length > (HEAD + CARRIED_MAX).next_multiple_of(PADDED) + AES_256_GCM_SIV.tag_len() {
            return Err(BadRecord::TooLong);
        }
        if self.read.len() < LENGTH + length {
            return Ok(None);
        }
        self.read.advance(LENGTH);
        Ok(Some(self.read.split_to(length)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use holdfast_domain::secret::CredentialSecret;
    use holdfast_domain::{ClaimId, OperationId, RelayNonce};
    use holdfast_testkit::Dice;

    use super::*;

    fn key(secret: u8) -> RelayKey {
        let key = CredentialSecret::new([secret; 32]).result_key(OperationId::from_u128(1));
        let [asking, telling] = [1, 2].map(RelayNonce::from_u128);
        key.relay_key(ClaimId::from_u128(1), asking, telling)
    }

    fn read(opener: &mut Opener, pieces: &[&[u8]]) -> Result<Vec<Record>, BadRecord> {
        let mut records = Vec::new();
        for piece in pieces {
            opener.take(piece);
            while let Some(next) = opener.next()? {
                records.push(next);
            }
        }
        Ok(records)
    }

    fn events() -> Vec<Vec<u8>> {
        let lengths = [0, 1, 100, CARRIED_MAX - 1, CARRIED_MAX, CARRIED_MAX + 1, EVENT_MAX];
        lengths.map(|length| vec![7; length]).into()
    }

    #[test]
    fn what_was_told_is_heard_in_pieces_of_any_size() {
        for size in [1, 19, 4_096, usize::MAX] {
            let mut sealer = Sealer::new(&key(1)).unwrap();
            let mut sent = Vec::new();
            for event in events() {
                sent.extend_from_slice(&sealer.event(&event).unwrap());
            }
            sent.extend_from_slice(&sealer.ping().unwrap());
            sent.extend_from_slice(&sealer.end().unwrap());
            let mut expected: Vec<_> =
                events().into_iter().map(|it| Record::Event(it.into())).collect();
            expected.extend([Record::Ping, Record::End]);
            let pieces: Vec<&[u8]> = sent.chunks(size.min(sent.len())).collect();
            assert_eq!(read(&mut Opener::new(&key(1)).unwrap(), &pieces), Ok(expected), "{size}");
        }
    }

    #[test]
    fn the_length_of_a_record_does_not_tell_that_of_a_token() {
        let mut sealer = Sealer::new(&key(1)).unwrap();
        let lengths: BTreeSet<_> =
            (0..PADDED - HEAD).map(|n| sealer.event(&vec![7; n]).unwrap().len()).collect();
        assert_eq!(lengths.len(), 1);
        assert_eq!(Some(&sealer.ping().unwrap().len()), lengths.first());
    }

    #[test]
    fn a_record_that_is_not_the_next_is_not_believed() {
        let mut sealer = Sealer::new(&key(1)).unwrap();
        let [one, two] = [b"one", b"two"].map(|event| sealer.event(event).unwrap());
        let event = |text: &'static [u8]| Record::Event(Bytes::from_static(text));
        let opener = |secret| Opener::new(&key(secret)).unwrap();
        assert_eq!(read(&mut opener(1), &[&one, &two]), Ok(vec![event(b"one"), event(b"two")]));
        for pieces in [[&two, &one], [&one, &one]] {
            let pieces = pieces.map(|piece| &**piece);
            assert_eq!(read(&mut opener(1), &pieces), Err(BadRecord::Foreign), "{pieces:?}");
        }
        assert_eq!(read(&mut opener(2), &[&one]), Err(BadRecord::Foreign));
    }

    #[test]
    fn nothing_is_kept_of_what_is_too_long() {
        let mut sealer = Sealer::new(&key(1)).unwrap();
        let long = sealer.event(&vec![7; EVENT_MAX + 1]).unwrap();
        let mut opener = Opener::new(&key(1)).unwrap();
        assert_eq!(read(&mut opener, &[&long]), Err(BadRecord::TooLong));
        let mut opener = Opener::new(&key(1)).unwrap();
        assert_eq!(read(&mut opener, &[&u32::MAX.to_be_bytes()]), Err(BadRecord::TooLong));
    }

    #[test]
    fn whatever_comes_is_refused_without_a_panic() {
        let mut dice = Dice::new(7);
        let mut roll =
            |sides: usize| usize::try_from(dice.roll(u64::try_from(sides).unwrap())).unwrap();
        for _ in 0..2_000 {
            let mut sealer = Sealer::new(&key(1)).unwrap();
            let mut sent = sealer.event(b"an event").unwrap().to_vec();
            let at = roll(sent.len());
            sent[at] ^= 1 << roll(8);
            let mut opener = Opener::new(&key(1)).unwrap();
            let read_back = read(&mut opener, &[&sent]);
            assert!(read_back.is_err() || read_back == Ok(Vec::new()), "{read_back:?}");
        }
    }
}
