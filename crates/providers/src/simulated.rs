//! Provider without a model: it echoes, calls tools, and misbehaves on request of the prompt.
//!
//! Not a fake for tests alone: an installation without any account uses it. So it keeps to the rules of a real
//! one: it notifies the sink before it "sends", counts tokens, respects the bound and the context, and streams
//! word by word. The rules and directives are in the crate's documentation.
//!
//! Never: network, randomness, or an answer that depends on anything but the call. The exception is
//! `fail-before-once`, which remembers `FAILED_ONCE_MAX` prompts of this process.

mod pieces;
mod schema;
mod script;
mod tools;

use std::collections::VecDeque;
use std::future::pending;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason, FunctionCallDelta, ToolCallDelta};
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::{
    Call, CallFailure, NotRunProof, Provider, ResponseMode, Sink, UnknownReason, UnsupportedParam,
};
use holdfast_domain::request::{Content, JsonSchema, Message, Opaque, Request, ResponseFormat};
use holdfast_domain::usage::{Meters, UsageReport};

use self::script::{Action, BadScript, Script};

/// Bytes of UTF-8 in a token; a rest is one more token.
const BYTES_PER_TOKEN: usize = 4;
/// Prompts that `fail-before-once` remembers; the oldest is forgotten first.
const FAILED_ONCE_MAX: usize = 1_024;

/// Echoes the last user message: see the crate's documentation for its rules and directives.
#[derive(Debug, Default)]
pub struct Simulator {
    /// Hashes of the prompts that `fail-before-once` has failed.
    failed_once: Mutex<VecDeque<u64>>,
}

impl Simulator {
    /// The model that echoes, by its name in routes.
    pub const MODEL: &str = "sim-1";
    /// The model that calls tools.
    pub const TOOLS_MODEL: &str = "sim-tools";
    /// Models of this provider.
    pub const MODELS: [&str; 2] = [Self::MODEL, Self::TOOLS_MODEL];

    /// A provider that has seen no prompt yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// True if this process meets the prompt for the first time, as far as it remembers; remembers it.
    fn is_new(&self, request: &Request) -> bool {
        let mut hasher = DefaultHasher::new();
        for Message { role, name, content, .. } in &request.messages {
            (role.label(), name).hash(&mut hasher);
            content.iter().flat_map(Content::texts).for_each(|text| text.hash(&mut hasher));
        }
        let prompt = hasher.finish();
        let mut failed = self.failed_once.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.contains(&prompt) {
            return false;
        }
        if failed.len() >= FAILED_ONCE_MAX {
            failed.pop_front();
        }
        failed.push_back(prompt);
        true
    }
}

#[async_trait]
impl Provider for Simulator {
    fn check_supported(&self, request: &Request) -> Result<(), UnsupportedParam> {
        let BadScript { message, directive } = match Script::of(request) {
            Ok(_script) => return Ok(()),
            Err(bad) => bad,
        };
        let rule = format!(
            "without `[[sim: {directive}]]`: it is no directive of the simulated models, has not \
             its line to itself, or contradicts another one"
        );
        Err(UnsupportedParam { param: format!("messages[{message}].content"), rule: rule.into() })
    }

    fn semantic_name(&self) -> &'static str {
        "simulated"
    }

    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure> {
        if !Self::MODELS.contains(&&*call.model) {
            return Err(CallFailure::NotRun(NotRunProof::Account));
        }
        sink.on_send();
        let script = Script::of(&call.request)
            .map_err(|BadScript { .. }| CallFailure::Refused(ProviderRefusal::Request))?;
        if let Some(wait) = script.slow {
            tokio::time::sleep(wait).await;
        }
        if script.fail_once && self.is_new(&call.request) {
            return Err(CallFailure::NotRun(NotRunProof::Overloaded));
        }
        let input = prompt_tokens(&call.request);
        if input > call.context_tokens {
            return Err(CallFailure::Refused(ProviderRefusal::ContextLength));
        }
        let choices = match tools::ToolUse::of(call) {
            Some(used) => called(call, &used, &script.text),
            None => answer(call, &script.text),
        };
        let output = choices.iter().map(choice_tokens).fold(0_u64, u64::saturating_add);
        match script.act {
            Action::Refuse => Err(CallFailure::Refused(ProviderRefusal::Request)),
            Action::ContextOverflow => Err(CallFailure::Refused(ProviderRefusal::ContextLength)),
            Action::FailBefore => Err(CallFailure::NotRun(NotRunProof::Overloaded)),
            Action::FailAfter => Err(CallFailure::Unknown(UnknownReason::Status)),
            Action::Break => {
                emit_choices(
                    call,
                    script.pace,
                    choices.into_iter().map(first_half).collect(),
                    sink,
                )
                .await;
                Err(CallFailure::Unknown(UnknownReason::Broken))
            }
            Action::Stall => {
                emit_choices(
                    call,
                    script.pace,
                    choices.into_iter().map(first_half).collect(),
                    sink,
                )
                .await;
                // Whoever dropped the call has had enough of it.
                pending().await
            }
            Action::Answer => {
                emit_choices(call, script.pace, choices, sink).await;
                Ok(Some(UsageReport::text(input, output)))
            }
            Action::NoUsage => {
                emit_choices(call, script.pace, choices, sink).await;
                Ok(None)
            }
            Action::AbsurdUsage => {
                emit_choices(call, script.pace, choices, sink).await;
                Ok(Some(UsageReport::text(u64::MAX, u64::MAX)))
            }
            Action::Overrun => {
                emit_choices(call, script.pace, choices, sink).await;
                let bound = call.usage_ceiling().output_tokens;
                let output = Meters::completion_max(bound);
                Ok(Some(UsageReport::text(call.context_tokens, output)))
            }
        }
    }
}

/// Emits the choices in one step, or piece by piece for a stream: the first piece of each choice, then the
/// second of each, with `pace` between two rounds.
async fn emit_choices(
    call: &Call,
    pace: Option<Duration>,
    choices: Vec<ChoiceDelta>,
    sink: &mut dyn Sink,
) {
    match call.response_mode {
        ResponseMode::Whole => sink.on_delta(Delta::from(choices)),
        ResponseMode::Streamed => {
            for (at, round) in pieces::rounds(choices).into_iter().enumerate() {
                if let Some(pace) = pace.filter(|_| at > 0) {
                    tokio::time::sleep(pace).await;
                }
                for piece in round {
                    sink.on_delta(Delta::from(vec![piece]));
                }
            }
        }
    }
}

/// Every choice of the answer: the echo, or JSON of the requested shape, cut at the first stop sequence or at
/// the token bound, at the earlier of the two.
fn answer(call: &Call, text: &str) -> Vec<ChoiceDelta> {
    let echo = match tools::answered(call) {
        Some(result) => format!("The tool said: {result}"),
        None if text.is_empty() => "You said nothing.".to_owned(),
        None => format!("You said: {text}"),
    };
    let shaped = shaped(call, &echo, text);
    let bytes_max = bytes_max(call);
    let choice = |index: u32| {
        let mut text = match (&shaped, index.checked_add(1)) {
            (Some(shaped), _) => shaped.clone(),
            (None, Some(number)) if number > 1 => format!("(choice {number}) {echo}"),
            (None, _) => echo.clone(),
        };
        let stops = call.request.stop.iter().filter(|stop| !stop.is_empty());
        if let Some(at) = stops.filter_map(|stop| text.find(stop.as_str())).min() {
            text.truncate(at);
        }
        let finish = if text.len() > bytes_max { FinishReason::Length } else { FinishReason::Stop };
        text.truncate(text.floor_char_boundary(bytes_max));
        ChoiceDelta { index, content: Some(text), finish: Some(finish), ..ChoiceDelta::default() }
    };
    (0..call.request.n).map(choice).collect()
}

/// The answer in the requested shape, if there is one: its texts are the last user message.
fn shaped(call: &Call, echo: &str, text: &str) -> Option<String> {
    match call.request.response_format.as_ref()? {
        ResponseFormat::JsonObject => Some(format!(r#"{{"said":{}}}"#, schema::quoted(echo))),
        ResponseFormat::JsonSchema(JsonSchema { schema, .. }) => {
            let result = tools::answered(call);
            let user_text = result.as_deref().unwrap_or(text);
            let schema = schema.as_ref().map(Opaque::as_str).unwrap_or_default();
            Some(schema::minimal(schema, user_text))
        }
    }
}

/// Every choice if a tool is called: all of them call it alike. A call that is longer than the bound is cut
/// there.
fn called(call: &Call, used: &tools::ToolUse, said: &str) -> Vec<ChoiceDelta> {
    let choice = |index| {
        let mut choice = used.choice(index, said);
        let left = bytes_max(call).saturating_sub(used.name.len());
        let input = choice
            .tool_calls
            .first_mut()
            .and_then(|called| called.input.as_mut())
            .or_else(|| choice.function_call.as_mut()?.arguments.as_mut());
        if let Some(input) = input.filter(|input| input.len() > left) {
            input.truncate(input.floor_char_boundary(left));
            choice.finish = Some(FinishReason::Length);
        }
        choice
    };
    (0..call.request.n).map(choice).collect()
}

fn bytes_max(call: &Call) -> usize {
    let tokens = usize::try_from(call.max_output_tokens).unwrap_or(usize::MAX);
    tokens.saturating_mul(BYTES_PER_TOKEN)
}

/// Choice as far as it is sent before it breaks: half of its text and inputs, and no end.
fn first_half(choice: ChoiceDelta) -> ChoiceDelta {
    let half = |mut text: String| {
        text.truncate(text.floor_char_boundary(text.len() / 2));
        text
    };
    let half_call = |call: ToolCallDelta| ToolCallDelta { input: call.input.map(half), ..call };
    let half_function =
        |call: FunctionCallDelta| FunctionCallDelta { arguments: call.arguments.map(half), ..call };
    ChoiceDelta {
        content: choice.content.map(half),
        tool_calls: choice.tool_calls.into_iter().map(half_call).collect(),
        function_call: choice.function_call.map(half_function),
        finish: None,
        ..choice
    }
}

/// Names and inputs of calls count separately, like messages.
fn choice_tokens(choice: &ChoiceDelta) -> u64 {
    let calls = choice.tool_calls.iter().flat_map(|call| [&call.name, &call.input]);
    let function = choice.function_call.iter().flat_map(|call| [&call.name, &call.arguments]);
    let texts = [&choice.content].into_iter().chain(calls).chain(function);
    texts.flatten().map(|text| tokens(text)).fold(0, u64::saturating_add)
}

/// All messages with their speakers' names. Never more than their bytes, so never above a hold.
fn prompt_tokens(request: &Request) -> u64 {
    let texts = request.messages.iter().flat_map(|message| {
        message.content.iter().flat_map(Content::texts).chain(message.name.as_deref())
    });
    texts.map(tokens).fold(0, u64::saturating_add)
}

fn tokens(text: &str) -> u64 {
    u64::try_from(text.len().div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}
