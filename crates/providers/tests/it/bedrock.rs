//! What Bedrock is shown of who asks: a key of its own as it is, an account's by a signature.

use holdfast_domain::ports::{Call, ResponseMode};
use holdfast_providers::kinds::{AwsKeys, Bedrock, HttpOptions, Kind, Region};
use holdfast_providers::{HttpProvider, LateSystem, ServerOptions, UpstreamKey};

use crate::calls::{call, request, run};
use crate::openai::server;
use crate::upstream::{ScriptedReply, Upstream, answer};

const ANSWER: &str = r#"{"output":{"message":{"role":"assistant","content":[{"text":"Hello."}]}},
    "stopReason":"end_turn","usage":{"inputTokens":9,"outputTokens":3}}"#;

fn keys() -> AwsKeys {
    AwsKeys {
        access_key_id: "AKIDEXAMPLE".to_owned(),
        secret_access_key: "a-secret-of-the-operator".to_owned(),
        session_token: Some("a-token".to_owned()),
    }
}

/// The head of what is sent for one call.
async fn head(api_key: Option<&str>, keys: Option<AwsKeys>, arrival: ResponseMode) -> String {
    let upstream = Upstream::start(ScriptedReply::Send(answer(200, ANSWER))).await;
    let api_key = api_key.map(|key| UpstreamKey::try_from(key).unwrap());
    let server = ServerOptions { api_key, ..server(&upstream.base_url()) };
    let region = Region::try_from("eu-central-1").unwrap();
    let kind = Kind::Bedrock(Bedrock { region, keys, late_system: LateSystem::Fold });
    let bedrock = HttpProvider::new(HttpOptions { server, kind }).unwrap();
    assert!(!format!("{bedrock:?}").contains("a-secret"));
    let asked =
        Call { model: "acme.large-1:0".into(), response_mode: arrival, ..call(request("hi")) };
    // A server that knows no streams answers whole.
    assert_eq!(run(&bedrock, &asked).await.usage(), Some((9, 3)));
    upstream.arrived()[0].head.clone()
}

#[tokio::test]
async fn a_key_of_its_own_is_shown_as_it_is() {
    let head = head(Some("bedrock-key"), None, ResponseMode::Whole).await;
    assert!(head.starts_with("POST /v1/model/acme.large-1%3A0/converse HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer bedrock-key\r\n"), "{head}");
    assert!(!head.contains("x-amz-"), "{head}");
}

#[tokio::test]
async fn a_request_is_signed_with_the_accounts_keys() {
    let head = head(None, Some(keys()), ResponseMode::Streamed).await;
    let line = "POST /v1/model/acme.large-1%3A0/converse-stream HTTP/1.1\r\n";
    assert!(head.starts_with(line), "{head}");
    assert!(head.contains("authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"), "{head}");
    assert!(head.contains("/eu-central-1/bedrock/aws4_request, "), "{head}");
    let signed = "SignedHeaders=host;x-amz-date;x-amz-security-token, Signature=";
    assert!(head.contains(signed), "{head}");
    assert!(head.contains("x-amz-security-token: a-token\r\n"), "{head}");
    assert_eq!(head.matches("\r\nhost: ").count(), 1, "{head}");
    assert!(!head.contains("a-secret"), "{head}");
}
