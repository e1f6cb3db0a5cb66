//! Hash tree of RFC 6962 over the rows of a day: its root, proofs that a leaf is in it, and their verification.
//!
//! ```text
//! leaf = SHA-256(0x00 ‖ canonical document)      node = SHA-256(0x01 ‖ left ‖ right)
//! ```
//!
//! The two prefixes keep a node from being taken for a leaf. A list of `n` leaves is split at the largest power of two
//! below `n`. The tree is known by its leaves' hashes, of 32 bytes each: a million rows of a day are 32 MB for the time
//! of a proof.
//!
//! ```
//! use holdfast_receipts::tree::{TreeHash, proof, root, root_of_proof};
//!
//! let leaves = ["a", "b", "c", "d", "e"].map(|row| TreeHash::leaf(row.as_bytes()));
//! // The way from the third of five leaves to the root has three hashes beside it.
//! let path = proof(&leaves, 2).unwrap();
//! assert_eq!(path.len(), 3);
//! assert_eq!(root_of_proof(leaves[2], (2, 5), &path), Some(root(&leaves)));
//! assert_ne!(root_of_proof(leaves[3], (2, 5), &path), Some(root(&leaves)));
//! ```

use aws_lc_rs::digest::{SHA256, digest};

/// Hash of a leaf, a node or a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeHash([u8; 32]);

impl TreeHash {
    /// Hash of a leaf with this content.
    #[must_use]
    pub fn leaf(content: &[u8]) -> Self {
        Self::hash(&[&[0], content])
    }

    /// Hash that these digits write.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        crate::hex::read(text).map(Self)
    }

    /// Hash of exactly these bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    fn node(left: Self, right: Self) -> Self {
        Self::hash(&[&[1], &left.0, &right.0])
    }

    fn hash(parts: &[&[u8]]) -> Self {
        let mut hash = [0; 32];
        hash.iter_mut()
            .zip(digest(&SHA256, &parts.concat()).as_ref())
            .for_each(|(to, from)| *to = *from);
        Self(hash)
    }
}

impl std::fmt::Display for TreeHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::hex::write(&self.0))
    }
}

/// Root of the tree over these leaves; that of no leaves is the hash of nothing.
#[must_use]
pub fn root(leaves: &[TreeHash]) -> TreeHash {
    match leaves {
        [] => TreeHash::hash(&[]),
        [leaf] => *leaf,
        [_, _, ..] => {
            let (left, right) = halves(leaves);
            TreeHash::node(root(left), root(right))
        }
    }
}

/// Proof that the leaf at this place is in the tree: the hashes beside its way to the root, the nearest first. `None`
/// for a place that the tree does not have.
#[must_use]
pub fn proof(leaves: &[TreeHash], index: usize) -> Option<Vec<TreeHash>> {
    match leaves {
        [] => None,
        [_leaf] => (index == 0).then(Vec::new),
        [_, _, ..] => {
            let (left, right) = halves(leaves);
            let (mut path, beside) = match index.checked_sub(left.len()) {
                None => (proof(left, index)?, root(right)),
                Some(index) => (proof(right, index)?, root(left)),
            };
            path.push(beside);
            Some(path)
        }
    }
}

/// Root that a proof leads to from a leaf at this place of a tree of `size` leaves; `None` if the proof has another
/// length than such a tree has.
#[must_use]
pub fn root_of_proof(
    leaf: TreeHash,
    (index, size): (u64, u64),
    path: &[TreeHash],
) -> Option<TreeHash> {
    // The loop of RFC 9162, 2.1.3.2: `at` is its `fn`, `last` its `sn`.
    let (mut at, mut last) = (index, size.checked_sub(1).filter(|last| index <= *last)?);
    let mut hash = leaf;
    for beside in path {
        if last == 0 {
            return None;
        }
        if at % 2 == 1 || at == last {
            hash = TreeHash::node(*beside, hash);
            // Levels at which this subtree is alone have no hash beside it.
            while at % 2 == 0 && at != 0 {
                (at, last) = (at / 2, last / 2);
            }
        } else {
            hash = TreeHash::node(hash, *beside);
        }
        (at, last) = (at / 2, last / 2);
    }
    (last == 0).then_some(hash)
}

/// The leaves on both sides of the largest power of two below their number.
fn halves(leaves: &[TreeHash]) -> (&[TreeHash], &[TreeHash]) {
    let below = leaves.len().saturating_sub(1).max(1);
    leaves.split_at(1 << below.ilog2())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Leaves and roots of the reference implementation of Certificate Transparency, for one to eight leaves.
    const LEAVES: [&[u8]; 8] = [
        b"",
        &[0x00],
        &[0x10],
        &[0x20, 0x21],
        &[0x30, 0x31],
        &[0x40, 0x41, 0x42, 0x43],
        &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
        &[
            0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d,
            0x6e, 0x6f,
        ],
    ];
    const ROOTS: [&str; 8] = [
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    ];

    #[test]
    fn roots_are_those_of_the_reference_implementation() {
        let leaves = LEAVES.map(TreeHash::leaf);
        for (n, expected) in (1..).zip(ROOTS) {
            assert_eq!(root(&leaves[..n]).to_string(), expected, "{n}");
        }
        let none = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(root(&[]).to_string(), none);
    }

    #[test]
    fn every_proof_leads_to_its_root_and_no_other_place_does() {
        let leaves: Vec<_> = (0..20_u8).map(|n| TreeHash::leaf(&[n])).collect();
        for size in 1..=leaves.len() {
            let (tree, of) = (&leaves[..size], u64::try_from(size).unwrap());
            for index in 0..size {
                let path = proof(tree, index).unwrap();
                for (place, at) in (0..of).enumerate() {
                    let led = root_of_proof(tree[index], (at, of), &path);
                    assert_eq!(
                        led == Some(root(tree)),
                        place == index,
                        "{index} {place} of {size}"
                    );
                }
                let longer = [&path[..], &[tree[0]]].concat();
                assert_eq!(
                    root_of_proof(tree[index], (index.try_into().unwrap(), of), &longer),
                    None
                );
            }
            assert_eq!(proof(tree, size), None);
        }
    }
}
