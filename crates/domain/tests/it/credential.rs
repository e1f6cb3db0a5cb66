//! What callers bear, and that nothing prints it.

use holdfast_domain::CredentialId;
use holdfast_domain::credential::Bearer;
use holdfast_domain::secret::{CredentialSecret, SecretTooShort, ServerSecret};
use holdfast_domain::{ApiKeyId, OperationId};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

fn bearer(id: u128, secret: [u8; 32]) -> Bearer {
    Bearer { id: CredentialId::from_u128(id), secret: CredentialSecret::new(secret) }
}

proptest! {
    #[test]
    fn a_bearer_is_read_back_from_exactly_its_own_text(
        id in any::<u128>(),
        secret in any::<[u8; 32]>(),
        at in 0_usize..70,
        to in "[ -~]",
    ) {
        let bearer = bearer(id, secret);
        let text = bearer.expose();
        prop_assert_eq!(text.len(), 70);
        prop_assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        prop_assert_eq!(Bearer::parse(&text), Some(bearer.clone()));
        let mut other = text.clone();
        other.replace_range(at..=at, &to);
        if other != text {
            prop_assert!(Bearer::parse(&other) != Some(bearer));
        }
    }
}

#[test]
fn a_bearer_has_one_spelling_for_ever() {
    let zero = format!("hfk_{}_{}", "0".repeat(22), "0".repeat(43));
    assert_eq!(bearer(0, [0; 32]).expose(), zero);
    let one = format!("hfk_{}1_{}z", "0".repeat(21), "0".repeat(42));
    let mut secret = [0; 32];
    secret[31] = 61;
    assert_eq!(bearer(1, secret).expose(), one);
    // 2^128 - 1 and 2^256 - 1 in base 62.
    let most = "hfk_7n42DGM5Tflk9n8mt7Fhc7_yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1";
    assert_eq!(bearer(u128::MAX, [0xff; 32]).expose(), most);
}

#[test]
fn nothing_that_is_secret_prints() {
    let server = ServerSecret::new(b"a server secret of enough bytes").unwrap();
    let bearer = bearer(7, [0xab; 32]);
    let operation = OperationId::from_u128(1);
    let shown = [
        format!("{server:?}"),
        format!("{bearer:?}"),
        format!("{:?}", bearer.secret),
        format!("{:?}", server.verifier(&bearer.secret)),
        format!("{:?}", bearer.secret.result_key(operation)),
        format!("{:?}", server.fingerprint_key(ApiKeyId::from_u128(1))),
    ];
    let secrets = ["a server", "97, 32", "61207365", "abab", "171, 171", "0xab"];
    for text in shown {
        for secret in secrets {
            assert!(!text.contains(secret), "{text}");
        }
    }
    let whole = bearer.expose();
    assert!(!format!("{bearer:?}").contains(&whole[27..]));
}

#[test]
fn the_key_of_a_result_is_what_the_formula_says() {
    let secret = [7; 32];
    let operation = OperationId::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);
    let parts = [&secret[..], &operation.to_bytes()[..]];
    let material =
        parts.map(|part| [&u64::try_from(part.len()).unwrap().to_be_bytes()[..], part].concat());
    let whole = blake3::derive_key("holdfast 2026-11 result v1", &material.concat());
    assert_eq!(*CredentialSecret::new(secret).result_key(operation).expose(), whole);
}

#[test]
fn keys_depend_on_all_that_they_are_for() {
    let [one, two] = [[1; 32], [2; 32]].map(CredentialSecret::new);
    let servers = [&[1; 16], &[2; 16]].map(|secret| ServerSecret::new(secret).unwrap());
    let [first, second] = &servers;
    assert!(first.verifier(&one) == first.verifier(&one));
    assert!(first.verifier(&one) != first.verifier(&two));
    assert!(first.verifier(&one) != second.verifier(&one));
    let (a, b) = (ApiKeyId::from_u128(1), ApiKeyId::from_u128(2));
    let fingerprint = |server: &ServerSecret, key| *server.fingerprint_key(key).expose();
    assert_ne!(fingerprint(first, a), fingerprint(first, b));
    assert_ne!(fingerprint(first, a), fingerprint(second, a));
    assert_ne!(fingerprint(first, a), *first.body_digest_key(a).expose());
    let pseudonym = |server: &ServerSecret, key, name| server.pseudonym_key(key).pseudonym(name);
    assert_eq!(pseudonym(first, a, "ann"), pseudonym(first, a, "ann"));
    assert_eq!(pseudonym(first, a, "").len(), 22);
    for other in [
        pseudonym(first, a, "bob"),
        pseudonym(first, b, "ann"),
        pseudonym(second, a, "ann"),
        "ann".to_owned(),
    ] {
        assert_ne!(pseudonym(first, a, "ann"), other);
    }
    let (x, y) = (OperationId::from_u128(1), OperationId::from_u128(2));
    assert_ne!(one.result_key(x).expose(), one.result_key(y).expose());
    assert_ne!(one.result_key(x).expose(), two.result_key(x).expose());
    assert_ne!(first.id(), second.id());
    assert_eq!(ServerSecret::new(&[1; 15]), Err(SecretTooShort));
}

#[test]
fn each_generation_of_each_route_has_its_own_upstream_key() {
    let of = |secret: &[u8], operation, generation, route| {
        let secret = ServerSecret::new(secret).unwrap();
        secret.upstream_key(OperationId::from_u128(operation), generation, route)
    };
    let one = of(b"at least sixteen bytes", 1, 1, ("inner", "acme/large-1"));
    // For ever: another process derives it again.
    assert_eq!(one.to_string(), "d04475ed-7593-4266-b483-b41d2319117f");
    let keys = [
        one,
        of(b"another of sixteen bytes", 1, 1, ("inner", "acme/large-1")),
        of(b"at least sixteen bytes", 2, 1, ("inner", "acme/large-1")),
        of(b"at least sixteen bytes", 1, 2, ("inner", "acme/large-1")),
        of(b"at least sixteen bytes", 1, 1, ("other", "acme/large-1")),
        of(b"at least sixteen bytes", 1, 1, ("inner", "acme/large-2")),
        of(b"at least sixteen bytes", 1, 1, ("inneracme", "/large-1")),
    ];
    let distinct: std::collections::BTreeSet<_> = keys.iter().collect();
    assert_eq!(distinct.len(), keys.len(), "{keys:?}");
    // A canonical UUIDv4, which the inner takes.
    assert!(keys.iter().all(|key| key.to_string().parse() == Ok(*key)), "{keys:?}");
}
