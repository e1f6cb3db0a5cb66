//! Identifiers: the same on every machine for ever, and spelled in one way where it matters.

use holdfast_domain::identity::NodeName;
use holdfast_domain::model::{ModelPattern, PublicModelId};
use holdfast_domain::{ApiKeyId, BadRequestKey, OperationId, RequestKey};

const KEY: &str = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";
const API_KEY: ApiKeyId = ApiKeyId::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff);

fn operation() -> OperationId {
    OperationId::of(API_KEY, KEY.parse().unwrap())
}

/// `D(noun, parts)` computed by BLAKE3's own one-call function, with the bits of a UUIDv8.
fn derived(noun: &str, material: &[u8]) -> u128 {
    let whole = blake3::derive_key(&format!("holdfast 2026-11 {noun} v1"), material);
    let mut bytes: [u8; 16] = whole[..16].try_into().unwrap();
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    u128::from_be_bytes(bytes)
}

#[test]
fn derived_ids_never_change() {
    let id = operation();
    let found = [
        id.to_string(),
        id.hold(1).to_string(),
        id.hold(2).to_string(),
        id.usage().to_string(),
        id.settlement().to_string(),
    ];
    let golden = [
        "87a45a50-fb8f-88fc-9af1-8eb98e37a739",
        "c5c0a419-b7fb-856e-8611-f515a7c39b7b",
        "a27e531c-2693-8da0-bfe0-f2ba43cd3db5",
        "4b2260b1-fa87-8a01-9ae8-49fee6ba0de2",
        "8e061ab5-db6e-8397-85b1-9e7e6b67e4c8",
    ];
    assert_eq!(found, golden);
}

#[test]
fn derived_ids_are_what_the_formula_says() {
    let key: RequestKey = KEY.parse().unwrap();
    let id = operation();
    let bits = |bytes: [u8; 16]| u128::from_be_bytes(bytes);
    let parts = [API_KEY.to_bytes(), key.to_bytes()].concat();
    assert_eq!(bits(id.to_bytes()), derived("operation", &parts));
    let second = [&id.to_bytes()[..], &2_u32.to_be_bytes()].concat();
    assert_eq!(bits(id.hold(2).to_bytes()), derived("hold", &second));
    assert_eq!(bits(id.usage().to_bytes()), derived("usage", &id.to_bytes()));
    assert_eq!(bits(id.settlement().to_bytes()), derived("settlement", &id.to_bytes()));
}

#[test]
fn derived_ids_are_uuids_of_version_eight() {
    for n in 0..50 {
        let id = OperationId::of(ApiKeyId::from_u128(n), KEY.parse().unwrap()).to_string();
        assert_eq!(&id[14..15], "8", "{id}");
        assert!(["8", "9", "a", "b"].contains(&&id[19..20]), "{id}");
    }
}

#[test]
fn one_api_key_or_request_key_more_is_another_operation() {
    let other_key: RequestKey = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c12".parse().unwrap();
    let others = [
        OperationId::of(ApiKeyId::from_u128(1), KEY.parse().unwrap()),
        OperationId::of(API_KEY, other_key),
    ];
    assert!(!others.contains(&operation()));
    assert_ne!(operation().hold(1), operation().hold(2));
}

#[test]
fn a_completion_id_is_the_operations_hex_digits() {
    let hex = operation().to_string().replace('-', "");
    assert_eq!(operation().completion_id(), format!("chatcmpl_{hex}"));
}

#[test]
fn a_request_key_has_one_spelling() {
    let key: RequestKey = KEY.parse().unwrap();
    assert_eq!(key.to_string(), KEY);
    assert_eq!(RequestKey::from_bytes(key.to_bytes()), Ok(key));
    let bad = [
        String::new(),
        KEY.to_uppercase(),
        KEY.replace('-', ""),
        format!("{{{KEY}}}"),
        format!("urn:uuid:{KEY}"),
        format!(" {KEY}"),
        format!("{KEY}\n"),
        KEY[..35].to_owned(),
        format!("{KEY}0"),
        KEY.replacen("-4", "-1", 1),
        KEY.replacen("-4", "-7", 1),
        KEY.replacen("-4", "-8", 1),
        KEY.replacen("-9", "-c", 1),
        KEY.replacen("-9", "-0", 1),
        KEY.replacen('7', "g", 1),
        "00000000-0000-0000-0000-000000000000".to_owned(),
        "ffffffff-ffff-ffff-ffff-ffffffffffff".to_owned(),
    ];
    for text in bad {
        assert!(text.parse::<RequestKey>().is_err(), "{text:?}");
    }
    for variant in ["8", "9", "a", "b"] {
        assert!(KEY.replacen("-9", &format!("-{variant}"), 1).parse::<RequestKey>().is_ok());
    }
    assert_eq!(RequestKey::from_bytes([0; 16]), Err(BadRequestKey));
}

#[test]
fn names_are_of_the_shape_that_rows_and_paths_can_bear() {
    let long = "n".repeat(64);
    for name in ["gw-1", "a", "A_b.9", &long] {
        let node = NodeName::try_from(name).unwrap();
        assert_eq!((node.as_str(), node.to_string().as_str()), (name, name));
    }
    for name in ["", "gw 1", "gw/1", "gw:1", "ü", &format!("{long}n")] {
        assert!(NodeName::try_from(name).is_err(), "{name:?}");
    }
    let long = format!("p/{}", "n".repeat(126));
    for id in ["openai/gpt-4o-mini", "0.a_b-c/Z9:free", "p/n", &long] {
        assert_eq!(PublicModelId::try_from(id).unwrap().as_str(), id);
    }
    let bad = [
        "",
        "/",
        "p",
        "p/",
        "/n",
        "P/n",
        "p/n/n",
        "-p/n",
        "p/-n",
        "p/n n",
        "p/ü",
        "p:q/n",
        &format!("{long}n"),
    ];
    for id in bad {
        assert!(PublicModelId::try_from(id).is_err(), "{id:?}");
    }
}

#[test]
fn the_id_of_a_call_says_whose_it_is_and_is_short_enough_for_every_server() {
    let id = OperationId::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
    assert_eq!(id.tool_call_id([0, 3]), "call_0296tiiBb3U904RIpygpjj_0_3");
    let all = [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef];
    for operation in all.map(OperationId::from_u128) {
        for at in [[0, 0], [1, 11], [11, 1], [127, 9_999]] {
            let text = operation.tool_call_id(at);
            assert!(text.len() <= 40, "{text}");
            assert_eq!(OperationId::of_tool_call(&text), Some((operation, at)), "{text}");
        }
    }
}

#[test]
fn other_ids_of_calls_are_nobodys() {
    let own = operation().tool_call_id([1, 2]);
    let digits = &own["call_".len()..][..22];
    for other in [
        String::new(),
        "call_".to_owned(),
        "call_abc123".to_owned(),
        own.replacen("call_", "tool_", 1),
        own.replace("_1_2", "_1"),
        own.replace("_1_2", "_1_2_3"),
        own.replace("_1_2", "_01_2"),
        own.replace("_1_2", "_+1_2"),
        own.replace("_1_2", "_1_4294967296"),
        own.replace(digits, &digits[1..]),
        own.replace(digits, &"z".repeat(22)),
        own.replace(digits, &"-".repeat(22)),
        format!("{own} "),
    ] {
        assert_eq!(OperationId::of_tool_call(&other), None, "{other}");
    }
}

#[test]
fn an_entry_of_an_allow_list_is_a_model_or_each_model_of_a_publisher() {
    let model = |id| PublicModelId::try_from(id).unwrap();
    for (entry, allowed, others) in [
        ("acme/large", vec!["acme/large"], vec!["acme/large-1", "acme/larg", "acmes/large"]),
        ("acme/*", vec!["acme/large", "acme/1"], vec!["acmes/large", "acm/large", "a.acme/large"]),
    ] {
        let pattern = ModelPattern::try_from(entry).unwrap();
        assert_eq!(pattern.as_str(), entry);
        for id in allowed {
            assert!(pattern.allows(&model(id)), "{entry} allows {id}");
        }
        for id in others {
            assert!(!pattern.allows(&model(id)), "{entry} does not allow {id}");
        }
    }
    assert_eq!(ModelPattern::of_publisher(&model("acme/large")).as_str(), "acme/*");
    let long = format!("{}/*", "a".repeat(127));
    for bad in
        ["", "*", "/*", "*/*", "acme", "acme/", "acme/l*", "acme/**", "Acme/*", "acme/a/*", &long]
    {
        assert!(ModelPattern::try_from(bad).is_err(), "{bad:?}");
    }
}
