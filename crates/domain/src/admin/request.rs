//! Requests of administration: the digests by which a repetition is recognized.
//!
//! ```text
//! digest            all of the request as the version that wrote it spells it     frozen, every version writes it
//! CanonicalDigest   version ‖ digest of the members that are present, by name     compared if both sides have it
//! ```
//!
//! A version that adds an optional member to a request must not turn its repetitions into other requests. The
//! first digest is made of a spelling in which absent members may appear, so it holds only while no version
//! adds one that does; it stays because nodes of the version before compare only that. The canonical one leaves
//! absent members out.
//!
//! A node of a later version may write a form that this one does not know: such a row is compared by the first digest,
//! as a row without a canonical one is. Neither comparison takes two requests for one.

use crate::CommandKey;

/// Digest of a request in its canonical form, behind the version of that form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanonicalDigest {
    version: u8,
    digest: [u8; 32],
}

impl CanonicalDigest {
    /// Version of the form that this program writes.
    pub const VERSION: u8 = 1;

    /// A digest of the form of this version.
    #[must_use]
    pub const fn new(digest: [u8; 32]) -> Self {
        Self { version: Self::VERSION, digest }
    }

    /// The digest that [`Self::to_bytes`] wrote, of any version.
    #[must_use]
    pub const fn from_bytes([version, digest @ ..]: [u8; 33]) -> Self {
        Self { version, digest }
    }

    /// The version, and then the digest.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 33] {
        let mut bytes = [self.version; 33];
        bytes[1..].copy_from_slice(&self.digest);
        bytes
    }
}

/// Binding of a command to its request: the key, and digests of its full content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestBinding {
    /// Request key, unique for its actor.
    pub key: CommandKey,
    /// Digest of the request.
    pub digest: [u8; 32],
    /// Canonical digest of the request; `None` for one that is never repeated by another version.
    pub canonical: Option<CanonicalDigest>,
}

impl RequestBinding {
    /// True if these are the digests of the request, as a row has them.
    #[must_use]
    pub fn is_of(&self, digest: [u8; 32], canonical: Option<CanonicalDigest>) -> bool {
        match (canonical, self.canonical) {
            (Some(other), Some(own)) if own.version == other.version => own == other,
            (Some(_) | None, Some(_) | None) => self.digest == digest,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_compared_by_canonical_digests_of_one_version_and_else_by_the_frozen_digest() {
        let canonical = |version: u8, byte: u8| {
            let mut bytes = [byte; 33];
            bytes[0] = version;
            Some(CanonicalDigest::from_bytes(bytes))
        };
        let record = |digest: u8, canonical| ([digest; 32], canonical);
        let request = |digest: u8, canonical| RequestBinding {
            key: CommandKey::from_u128(1),
            digest: [digest; 32],
            canonical,
        };
        for (record, request, is_same) in [
            (record(1, canonical(1, 7)), request(2, canonical(1, 7)), true),
            (record(1, canonical(1, 7)), request(1, canonical(1, 8)), false),
            // Of the version before, on either side.
            (record(1, None), request(1, canonical(1, 7)), true),
            (record(1, None), request(2, canonical(1, 7)), false),
            (record(1, canonical(1, 7)), request(1, None), true),
            (record(1, None), request(1, None), true),
            // Of a version to come.
            (record(1, canonical(2, 7)), request(1, canonical(1, 7)), true),
            (record(1, canonical(2, 7)), request(2, canonical(1, 7)), false),
        ] {
            assert_eq!(request.is_of(record.0, record.1), is_same, "{record:?} {request:?}");
        }
    }

    #[test]
    fn a_canonical_digest_has_its_version_in_front() {
        let digest = CanonicalDigest::new([9; 32]);
        assert_eq!((digest.to_bytes()[0], &digest.to_bytes()[1..]), (1, &[9; 32][..]));
        assert_eq!(CanonicalDigest::from_bytes(digest.to_bytes()), digest);
    }
}
