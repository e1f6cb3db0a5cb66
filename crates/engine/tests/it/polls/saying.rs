//! What each kind of provider says, in its own words and frames, with anything at all in it.

use std::fmt::Write;

/// A kind of provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApiKind {
    OpenAi,
    Azure,
    Anthropic,
    Gemini,
    Bedrock,
}

/// Something that is said: texts as they stand in JSON, without their quotes.
#[derive(Debug, Clone)]
pub(super) enum AnswerPart {
    Text(String),
    Thought(String),
    /// So many calls with this input each.
    Calls(usize, String),
    /// A member that nobody knows, with this value.
    Extra(String),
    /// So many sources, log-probabilities, and further choices: OpenAI's own.
    Sources(usize),
    Likely(usize),
    Choices(usize),
}

impl ApiKind {
    pub(super) const fn has_sources(self) -> bool {
        matches!(self, Self::OpenAi | Self::Azure)
    }

    /// How a stream begins.
    pub(super) fn begin(self) -> Vec<u8> {
        match self {
            Self::OpenAi | Self::Azure | Self::Gemini | Self::Bedrock => Vec::new(),
            Self::Anthropic => [
                self.event("", r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}"#),
                self.event("", r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#),
            ]
            .concat(),
        }
    }

    /// How a stream that is whole ends.
    pub(super) fn end(self) -> Vec<u8> {
        match self {
            Self::OpenAi | Self::Azure => [
                self.event("", r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#),
                self.event(
                    "",
                    r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":3}}"#,
                ),
                self.event("", "[DONE]"),
            ]
            .concat(),
            Self::Anthropic => [
                self.event("", r#"{"type":"content_block_stop","index":0}"#),
                self.event("", r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#),
                self.event("", r#"{"type":"message_stop"}"#),
            ]
            .concat(),
            Self::Gemini => self.event("", r#"{"candidates":[{"content":{"parts":[{"text":"."}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3}}"#),
            Self::Bedrock => [
                self.event("messageStop", r#"{"stopReason":"end_turn"}"#),
                self.event("metadata", r#"{"usage":{"inputTokens":5,"outputTokens":3}}"#),
            ]
            .concat(),
        }
    }

    /// One or more events that say it.
    pub(super) fn say(self, part: &AnswerPart) -> Vec<u8> {
        match self {
            Self::OpenAi | Self::Azure => self.event("", &openai(part, "delta", "")),
            Self::Gemini => self.event("", &format!(r#"{{"candidates":[{{{}}}]}}"#, gemini(part))),
            Self::Anthropic => self.anthropic(part),
            Self::Bedrock => self.bedrock(part),
        }
    }

    /// A whole answer that says it.
    pub(super) fn whole(self, part: &AnswerPart) -> Vec<u8> {
        let body = match self {
            Self::OpenAi | Self::Azure => openai(part, "message", r#","finish_reason":"stop""#),
            Self::Gemini => format!(
                r#"{{"candidates":[{{{},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":5,"candidatesTokenCount":3}}}}"#,
                gemini(part)
            ),
            Self::Anthropic => {
                let (blocks, extra) = match part {
                    AnswerPart::Text(text) => {
                        (format!(r#"{{"type":"text","text":"{text}"}}"#), "0")
                    }
                    AnswerPart::Thought(text) => (
                        format!(r#"{{"type":"thinking","thinking":"{text}","signature":"s"}}"#),
                        "0",
                    ),
                    AnswerPart::Calls(n, input) => (
                        listed(*n, |_at| {
                            format!(r#"{{"type":"tool_use","name":"f","input":{{"a":"{input}"}}}}"#)
                        }),
                        "0",
                    ),
                    AnswerPart::Extra(value) => (String::new(), value.as_str()),
                    AnswerPart::Sources(_) | AnswerPart::Likely(_) | AnswerPart::Choices(_) => {
                        (String::new(), "0")
                    }
                };
                format!(
                    r#"{{"content":[{blocks}],"stop_reason":"end_turn","usage":{{"input_tokens":5,"output_tokens":3}},"x":{extra}}}"#
                )
            }
            Self::Bedrock => {
                let (blocks, extra) = match part {
                    AnswerPart::Text(text) => (format!(r#"{{"text":"{text}"}}"#), "0"),
                    AnswerPart::Thought(text) => (
                        format!(
                            r#"{{"reasoningContent":{{"reasoningText":{{"text":"{text}","signature":"s"}}}}}}"#
                        ),
                        "0",
                    ),
                    AnswerPart::Calls(n, input) => (
                        listed(*n, |_at| {
                            format!(r#"{{"toolUse":{{"name":"f","input":{{"a":"{input}"}}}}}}"#)
                        }),
                        "0",
                    ),
                    AnswerPart::Extra(value) => (String::new(), value.as_str()),
                    AnswerPart::Sources(_) | AnswerPart::Likely(_) | AnswerPart::Choices(_) => {
                        (String::new(), "0")
                    }
                };
                format!(
                    r#"{{"output":{{"message":{{"content":[{blocks}]}}}},"stopReason":"end_turn","usage":{{"inputTokens":5,"outputTokens":3}},"x":{extra}}}"#
                )
            }
        };
        body.into_bytes()
    }

    /// An event as this kind frames it.
    pub(super) fn event(self, name: &str, payload: &str) -> Vec<u8> {
        match self {
            Self::OpenAi | Self::Azure | Self::Anthropic | Self::Gemini => {
                format!("data: {payload}\n\n").into_bytes()
            }
            Self::Bedrock => frame(name, payload.as_bytes()),
        }
    }

    /// An event that says nothing, as small as there is one.
    pub(super) fn nothing(self) -> Vec<u8> {
        match self {
            Self::OpenAi | Self::Azure | Self::Gemini => self.event("", "{}"),
            Self::Anthropic => self.event("", r#"{"type":"ping"}"#),
            Self::Bedrock => self.event("p", "{}"),
        }
    }

    fn anthropic(self, part: &AnswerPart) -> Vec<u8> {
        match part {
            AnswerPart::Text(text) => self.event(
                "",
                &format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
                ),
            ),
            AnswerPart::Thought(text) => [
                self.event("", r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":""}}"#),
                self.event(
                    "",
                    &format!(
                        r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"thinking_delta","thinking":"{text}"}}}}"#
                    ),
                ),
                self.event("", r#"{"type":"content_block_stop","index":1}"#),
            ]
            .concat(),
            AnswerPart::Calls(n, input) => (0..*n)
                .flat_map(|at| {
                    let at = at.saturating_add(2);
                    let begun = format!(
                        r#"{{"type":"content_block_start","index":{at},"content_block":{{"type":"tool_use","name":"f"}}}}"#
                    );
                    let more = format!(
                        r#"{{"type":"content_block_delta","index":{at},"delta":{{"type":"input_json_delta","partial_json":"{input}"}}}}"#
                    );
                    [self.event("", &begun), self.event("", &more)].concat()
                })
                .collect(),
            AnswerPart::Extra(value) => self.event("", &format!(r#"{{"type":"ping","x":{value}}}"#)),
            AnswerPart::Sources(_) | AnswerPart::Likely(_) | AnswerPart::Choices(_) => self.nothing(),
        }
    }

    fn bedrock(self, part: &AnswerPart) -> Vec<u8> {
        const DELTA: &str = "contentBlockDelta";
        match part {
            AnswerPart::Text(text) => {
                self.event(DELTA, &format!(r#"{{"contentBlockIndex":0,"delta":{{"text":"{text}"}}}}"#))
            }
            AnswerPart::Thought(text) => self.event(
                DELTA,
                &format!(
                    r#"{{"contentBlockIndex":1,"delta":{{"reasoningContent":{{"text":"{text}"}}}}}}"#
                ),
            ),
            AnswerPart::Calls(n, input) => (0..*n)
                .flat_map(|at| {
                    let at = at.saturating_add(2);
                    let begun = format!(
                        r#"{{"contentBlockIndex":{at},"start":{{"toolUse":{{"name":"f"}}}}}}"#
                    );
                    let more = format!(
                        r#"{{"contentBlockIndex":{at},"delta":{{"toolUse":{{"input":"{input}"}}}}}}"#
                    );
                    [self.event("contentBlockStart", &begun), self.event(DELTA, &more)].concat()
                })
                .collect(),
            AnswerPart::Extra(value) => self.event("p", &format!(r#"{{"x":{value}}}"#)),
            AnswerPart::Sources(_) | AnswerPart::Likely(_) | AnswerPart::Choices(_) => self.nothing(),
        }
    }
}

/// `member` is what a choice gains or has.
fn openai(part: &AnswerPart, member: &str, end: &str) -> String {
    let one = |said: &str, beside: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"{member}":{{{said}}}{beside}{end}}}],"usage":{{"prompt_tokens":5,"completion_tokens":3}}}}"#
        )
    };
    match part {
        AnswerPart::Text(text) => one(&format!(r#""content":"{text}""#), ""),
        AnswerPart::Thought(text) => one(&format!(r#""reasoning_content":"{text}""#), ""),
        AnswerPart::Calls(n, input) => {
            let calls = listed(*n, |at| {
                format!(
                    r#"{{"index":{at},"type":"function","id":"c{at}","function":{{"name":"f","arguments":"{input}"}}}}"#
                )
            });
            one(&format!(r#""tool_calls":[{calls}]"#), "")
        }
        AnswerPart::Extra(value) => one(&format!(r#""x":{value}"#), ""),
        AnswerPart::Sources(n) => {
            let source = |at| {
                format!(
                    r#"{{"type":"url_citation","url_citation":{{"url":"https://a.test/{at}?utm_source=x","title":"t"}}}}"#
                )
            };
            one(&format!(r#""annotations":[{}]"#, listed(*n, source)), "")
        }
        AnswerPart::Likely(n) => {
            let token = |_at| {
                r#"{"token":"a","logprob":-1,"bytes":[97],"top_logprobs":[{"token":"a","logprob":-1}]}"#
                    .to_owned()
            };
            let tokens = listed(*n, token);
            one(r#""content":"a""#, &format!(r#","logprobs":{{"content":[{tokens}]}}"#))
        }
        AnswerPart::Choices(n) => {
            let choices =
                listed(*n, |at| format!(r#"{{"index":{at},"{member}":{{"content":"a"}}{end}}}"#));
            format!(r#"{{"choices":[{choices}]}}"#)
        }
    }
}

/// What a candidate has.
fn gemini(part: &AnswerPart) -> String {
    let parts = match part {
        AnswerPart::Text(text) => format!(r#"{{"text":"{text}"}}"#),
        AnswerPart::Thought(text) => format!(r#"{{"thought":true,"text":"{text}"}}"#),
        AnswerPart::Calls(n, input) => listed(*n, |_at| {
            format!(
                r#"{{"functionCall":{{"name":"f","args":{{"a":"{input}"}}}},"thoughtSignature":"s"}}"#
            )
        }),
        AnswerPart::Extra(value) => return format!(r#""content":{{"parts":[]}},"x":{value}"#),
        AnswerPart::Sources(_) | AnswerPart::Likely(_) | AnswerPart::Choices(_) => String::new(),
    };
    format!(r#""content":{{"parts":[{parts}]}}"#)
}

/// So many with commas between them.
pub(super) fn listed(n: usize, one: impl Fn(usize) -> String) -> String {
    let mut all = String::new();
    for at in 0..n {
        let comma = if at == 0 { "" } else { "," };
        write!(all, "{comma}{}", one(at)).unwrap();
    }
    all
}

/// A frame of AWS's event stream.
fn frame(name: &str, payload: &[u8]) -> Vec<u8> {
    let header = |name: &str, value: &str| {
        let length = u16::try_from(value.len()).unwrap().to_be_bytes();
        let short = u8::try_from(name.len()).unwrap();
        [&[short], name.as_bytes(), &[7], &length, value.as_bytes()].concat()
    };
    let headers = [header(":event-type", name), header(":message-type", "event")].concat();
    let length = |bytes: usize| u32::try_from(bytes).unwrap().to_be_bytes();
    let all = headers.len().saturating_add(payload.len()).saturating_add(16);
    let mut frame = [length(all), length(headers.len())].concat();
    frame.extend(checksum(&frame).to_be_bytes());
    frame.extend(headers);
    frame.extend(payload);
    frame.extend(checksum(&frame).to_be_bytes());
    frame
}

/// CRC-32 as in zip files.
fn checksum(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _bit| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}
