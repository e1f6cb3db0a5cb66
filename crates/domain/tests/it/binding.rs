//! What counts as the same request: the same bytes, else the same fingerprint under the same terms.

use holdfast_domain::model::FingerprintTerms;
use holdfast_domain::operation::Binding;
use holdfast_domain::secret::{BodyDigest, Fingerprint, ServerSecretId};
use holdfast_testkit::sample;

fn binding(fingerprint: u8, body_digest: u8, terms: FingerprintTerms) -> Binding {
    let fingerprint = Fingerprint::from_bytes([fingerprint; 32]);
    Binding { terms, fingerprint, body_digest: BodyDigest::from_bytes([body_digest; 32]) }
}

#[test]
fn bytes_or_fingerprint_make_the_same_request_and_nothing_else_does() {
    let same = sample::terms();
    let other_secret =
        FingerprintTerms { server_secret: ServerSecretId::from_bytes([2; 8]), ..same };
    let other_contract = FingerprintTerms { contract: 2, ..same };
    let other_feed = FingerprintTerms { fingerprint_version: 2, ..same };
    let bound = binding(1, 1, same);
    let table = [
        ("the same", binding(1, 1, same), true),
        ("the same bytes, hashed otherwise", binding(2, 1, same), true),
        ("the same meaning in other bytes", binding(1, 2, same), true),
        ("another request", binding(2, 2, same), false),
        ("the same bytes under another contract", binding(2, 1, other_contract), true),
        ("the same bytes under another feed", binding(2, 1, other_feed), true),
        ("a fingerprint of another contract", binding(1, 2, other_contract), false),
        ("a fingerprint of another feed", binding(1, 2, other_feed), false),
        ("hashes that were made with another secret", binding(1, 1, other_secret), false),
    ];
    for (name, other, expected) in table {
        assert_eq!(bound.is_same_request(&other), expected, "{name}");
        assert_eq!(other.is_same_request(&bound), expected, "{name}, turned round");
    }
}
