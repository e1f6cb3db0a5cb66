//! The simulated model that calls tools: which one, with what, and what it says of the result.

use holdfast_domain::answer::FinishReason;
use holdfast_domain::ports::{Call, ResponseMode};
use holdfast_domain::request::{AssistantMessage, Request, Role};
use holdfast_providers::Simulator;
use holdfast_wire::chat::request::parse;

use crate::calls::{CallResult, call, message, run};

const TOOLS: &str = r#""tools":[
    {"type":"function","function":{"name":"look","parameters":{"type":"object","required":
        ["q","n","exact","tags","unit","inner","free","low"],"properties":{
        "q":{"type":"string"},"n":{"type":"integer"},"exact":{"type":"boolean"},
        "tags":{"type":"array"},"unit":{"enum":["C","F"]},"free":{},"low":{"type":["number","null"],
        "minimum":2.50},"inner":{"type":"object","required":["x"]},"other":{"type":"string"}}}}},
    {"type":"function","function":{"name":"go"}},
    {"type":"custom","custom":{"name":"write"}}]"#;

const LOOKED: &str = r#"{"q":"hi \"you\"","n":1,"exact":true,"tags":[],"unit":"C","inner":{"x":"hi \"you\""},"free":"hi \"you\"","low":2.50}"#;

fn request(members: &str) -> Request {
    let body = format!(
        r#"{{"model":"a/b","messages":[{{"role":"user","content":"hi \"you\""}}],{members}}}"#
    );
    parse(body.as_bytes()).unwrap().request
}

fn asked(request: Request) -> Call {
    Call { model: Simulator::TOOLS_MODEL.into(), ..call(request) }
}

/// The name and the input of what the first choice calls, and its end.
fn called(ran: &CallResult) -> (Option<(String, String)>, Option<FinishReason>) {
    let choice = ran.answer.choices().next().unwrap().1;
    let tool = choice.tool_calls.get(&0).map(|call| (call.name.clone(), call.input.clone()));
    let function = choice.function_call.as_ref();
    let function = function.map(|call| (call.name.clone(), call.arguments.clone()));
    (tool.or(function), choice.finish)
}

async fn check(members: &str, name: &str, input: &str, finish: FinishReason) {
    let ran = run(&Simulator::new(), &asked(request(members))).await;
    let expected = Some((name.to_owned(), input.to_owned()));
    assert_eq!(called(&ran), (expected, Some(finish)), "{members}");
    let streamed = Call { response_mode: ResponseMode::Streamed, ..asked(request(members)) };
    let pieces = run(&Simulator::new(), &streamed).await;
    assert_eq!((pieces.answer, pieces.outcome), (ran.answer, ran.outcome), "{members}");
}

#[tokio::test]
async fn calls_the_first_tool_or_the_one_that_is_forced() {
    use FinishReason::{FunctionCall, ToolCalls};
    let with = |choice: &str| format!(r#"{TOOLS},"tool_choice":{choice}"#);
    check(TOOLS, "look", LOOKED, ToolCalls).await;
    check(&with("\"auto\""), "look", LOOKED, ToolCalls).await;
    check(&with("\"required\""), "look", LOOKED, ToolCalls).await;
    let go = r#"{"type":"function","function":{"name":"go"}}"#;
    check(&with(go), "go", "{}", ToolCalls).await;
    let write = r#"{"type":"custom","custom":{"name":"write"}}"#;
    check(&with(write), "write", "hi \"you\"", ToolCalls).await;
    let allowed = format!(
        r#"{{"type":"allowed_tools","allowed_tools":{{"mode":"auto","tools":[{write},{go}]}}}}"#
    );
    check(&with(&allowed), "write", "hi \"you\"", ToolCalls).await;
    let functions = r#""functions":[{"name":"a"},{"name":"b","parameters":{"required":["x"]}}]"#;
    check(functions, "a", "{}", FunctionCall).await;
    let named = format!(r#"{functions},"function_call":{{"name":"b"}}"#);
    check(&named, "b", r#"{"x":"hi \"you\""}"#, FunctionCall).await;
}

#[tokio::test]
async fn says_something_where_there_is_nothing_to_call() {
    let none = format!(r#"{TOOLS},"tool_choice":"none""#);
    for members in [none.as_str(), r#""n":1"#] {
        let ran = run(&Simulator::new(), &asked(request(members))).await;
        assert_eq!(ran.choices(), [("You said: hi \"you\"", Some(FinishReason::Stop))]);
    }
    let ran = run(&Simulator::new(), &call(request(TOOLS))).await;
    assert_eq!(ran.choices(), [("You said: hi \"you\"", Some(FinishReason::Stop))], "sim-1");
}

#[tokio::test]
async fn says_what_the_tool_said_unless_it_has_to_call_again() {
    let after = |members: &str| {
        let mut request = request(members);
        request.messages.push(message(Role::Assistant(AssistantMessage::default()), ""));
        let call_id = "call_1".to_owned();
        request.messages.push(message(Role::Tool { call_id }, "seven"));
        request
    };
    let ran = run(&Simulator::new(), &asked(after(TOOLS))).await;
    assert_eq!(ran.choices(), [("The tool said: seven", Some(FinishReason::Stop))]);
    let required = format!(r#"{TOOLS},"tool_choice":"required""#);
    let ran = run(&Simulator::new(), &asked(after(&required))).await;
    assert_eq!(called(&ran).1, Some(FinishReason::ToolCalls));
}

#[tokio::test]
async fn counts_names_and_inputs_and_keeps_to_the_bound() {
    let members = r#""n":2,"tools":[{"type":"function","function":{"name":"lookup","parameters":{"required":["q"]}}}]"#;
    let ran = run(&Simulator::new(), &asked(request(members))).await;
    // lookup: 2; {"q":"hi \"you\""}: 20 bytes, 5.
    assert_eq!(ran.usage().unwrap().1, 14);
    let bounded = Call { max_output_tokens: 3, ..asked(request(members)) };
    let ran = run(&Simulator::new(), &bounded).await;
    let cut = Some(("lookup".to_owned(), "{\"q\":\"".to_owned()));
    assert_eq!(called(&ran), (cut, Some(FinishReason::Length)));
}
