//! That requests are refused where OpenAI's schema refuses them, and nowhere else but where a rule of
//! ours says so: any one value of a valid request becomes some other value.

use holdfast_domain::model::{Contract, RestrictedField};
use holdfast_domain::request::Request;
use holdfast_wire::chat::request::{BadRequest, check, is_known_member, parse};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use crate::generated::requests;
use crate::places;
use crate::respelling::tree;
use crate::schema;
use crate::spelling::{Json, Style, Whim, written};

const SAMPLES: u64 = 200;
const CHANGES: usize = 12;

/// Where a value that the schema takes is refused all the same, and why.
const STRICTER: [(&str, &str); 10] = [
    ("functions[].name", "its text says which characters, and how many"),
    ("tools[].function.name", "the same"),
    ("response_format.json_schema.name", "the same"),
    ("logit_bias", "its text says from -100 to 100"),
    ("max_completion_tokens", "an answer of no tokens is none"),
    ("messages[].content[].file.file_data", "a document is sent along or named"),
    ("messages[].content[].image_url.url", "other schemes name files of the provider's machine"),
    ("messages[].name", "the schema leaves a tool's name open; here it is a string"),
    ("modalities", "an answer in no form is none"),
    ("model", "public ids have a publisher"),
];

/// Values of every sort, some of them within many bounds and some within none.
fn another(whim: &mut Whim) -> Json {
    let number = |text: &str| Json::Number(text.to_owned());
    let text = |text: &str| Json::Text(text.to_owned());
    match whim.of(12) {
        0 => Json::Word("true"),
        1 => number("0"),
        2 => number("1"),
        3 => number("-3"),
        4 => number("0.5"),
        5 => number("129"),
        6 => text(""),
        7 => text("auto"),
        8 => text(&"é".repeat(129)),
        9 => Json::Array(Vec::new()),
        10 => Json::Array(vec![text("x"), number("1")]),
        _ => Json::Object(Vec::new()),
    }
}

/// `messages[0].content[1]` without its numbers, and without names that the caller made up.
fn shape(param: &str) -> String {
    let param = if param.starts_with("logit_bias.") { "logit_bias" } else { param };
    param.chars().filter(|character| !character.is_ascii_digit()).collect()
}

/// Words are refused by the contract of a model, which may accept more; here no model does.
fn refuse_words(request: &Request) -> Result<(), BadRequest> {
    let contract = Contract {
        accepts: request.extras.keys().filter(|name| !is_known_member(name)).cloned().collect(),
        allow: RestrictedField::ALL.into(),
        ..Contract::new(request.model.clone(), 1, u64::MAX, u64::MAX)
    };
    let words = Request { messages: Vec::new(), tools: Vec::new(), ..request.clone() };
    check(&words, b"{}", &contract)
}

#[test]
fn requests_are_refused_where_openai_s_schema_refuses_them() {
    let mut runner = TestRunner::deterministic();
    let mut refused = 0;
    for seed in 0..SAMPLES {
        let request = requests().new_tree(&mut runner).unwrap().current();
        let whim = &mut Whim(seed);
        let valid = tree(&request);
        for _change in 0..CHANGES {
            let mut tree = valid.clone();
            let Some((place, _)) = places::some(&mut tree, |_, name, _| !name.is_empty(), whim)
            else {
                continue;
            };
            *place = another(whim);
            // An empty value leaves a member out, where the schema wants another one or none.
            let is_empty = *place == Json::Text(String::new()) || *place == Json::Array(Vec::new());
            let body = written(&tree, Style::Plain, &mut Whim(0));
            let fault = schema::request_fault(&serde_json::from_str(&body).unwrap());
            let read = parse(body.as_bytes());
            match (fault, read.and_then(|read| refuse_words(&read.request))) {
                (Some(_), Ok(())) if is_empty => {}
                (Some(fault), Ok(())) => panic!("taken, but {fault}: {body}"),
                (Some(_), Err(_)) => refused += 1,
                (None, Err(bad)) => {
                    let at = shape(bad.param.as_deref().unwrap_or_default());
                    let is_ours = STRICTER.iter().any(|(param, _why)| *param == at);
                    assert!(is_ours, "refused, and the schema takes it: {bad}: {body}");
                }
                (None, Ok(())) => {}
            }
        }
    }
    assert!(refused > 500, "{refused}");
}
