//! Proof of two nodes to each other, before one sends the other the text of a run. Both know the result key of
//! the operation, because the same credential called both: the one that runs it has it from its first caller,
//! the other from the caller that retries there. No other secret is shared, and no other process has it.

use std::fmt;
use std::str::FromStr;

use super::{ResultKey, derived};
use crate::private::unprinted;
use crate::{ClaimId, RelayNonce};

/// Proof of the requesting node that it knows the result key. Comparison takes the same time for all values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RelayProof(blake3::Hash);

/// Seals the content of one relay.
#[derive(Clone)]
pub struct RelayKey([u8; 32]);

impl fmt::Display for RelayProof {
    /// 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_hex())
    }
}

impl FromStr for RelayProof {
    type Err = BadRelayProof;

    fn from_str(text: &str) -> Result<Self, BadRelayProof> {
        blake3::Hash::from_hex(text).map(Self).map_err(|_bad| BadRelayProof)
    }
}

/// A text that is no proof.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not 64 hexadecimal digits")]
pub struct BadRelayProof;

unprinted! { RelayProof, RelayKey }

impl RelayKey {
    /// The key's bytes, for the cipher that uses it.
    #[must_use]
    pub const fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

impl ResultKey {
    /// Proof of a holder of this key that it may read the run of a claim.
    #[must_use]
    pub fn relay_proof(&self, claim: ClaimId, asking: RelayNonce) -> RelayProof {
        // Under a context of its own: a proof that was seen on the wire is no key.
        let parts = [&self.0[..], &claim.to_bytes()[..], &asking.to_bytes()[..]];
        RelayProof(blake3::Hash::from_bytes(derived("holdfast 2026-11 relay ask v1", &parts)))
    }

    /// Key that seals the relay of a claim's run. No two relays have the same: each end brings a nonce.
    #[must_use]
    pub fn relay_key(&self, claim: ClaimId, asking: RelayNonce, telling: RelayNonce) -> RelayKey {
        // Both nonces: neither end alone can make two relays share a key.
        let parts =
            [&self.0[..], &claim.to_bytes()[..], &asking.to_bytes()[..], &telling.to_bytes()[..]];
        RelayKey(derived("holdfast 2026-11 relay tape v1", &parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperationId;
    use crate::secret::CredentialSecret;

    #[test]
    fn another_credential_claim_or_nonce_is_another_proof_and_another_key() {
        let key = |secret, operation| {
            CredentialSecret::new([secret; 32]).result_key(OperationId::from_u128(operation))
        };
        let (claim, other) = (ClaimId::from_u128(1), ClaimId::from_u128(2));
        let [ours, theirs] = [1, 2].map(RelayNonce::from_u128);
        let proof = key(1, 1).relay_proof(claim, ours);
        assert_eq!(proof.to_string().parse(), Ok(proof));
        assert_eq!(proof, key(1, 1).relay_proof(claim, ours));
        for different in [
            key(2, 1).relay_proof(claim, ours),
            key(1, 2).relay_proof(claim, ours),
            key(1, 1).relay_proof(other, ours),
            key(1, 1).relay_proof(claim, theirs),
        ] {
            assert_ne!(proof, different);
        }
        let tape = key(1, 1).relay_key(claim, ours, theirs);
        for different in [
            key(2, 1).relay_key(claim, ours, theirs),
            key(1, 1).relay_key(other, ours, theirs),
            key(1, 1).relay_key(claim, theirs, theirs),
            key(1, 1).relay_key(claim, ours, ours),
        ] {
            assert_ne!(tape.expose(), different.expose());
        }
        assert_ne!(tape.expose(), proof.0.as_bytes());
    }
}
