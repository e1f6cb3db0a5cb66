//! A reply that streams: its texts, their moments, and its end. Each step with a text is one chunk of HTTP, which
//! may be broken on purpose.

use std::time::Duration;

use serde_json::{Value, json};

use super::answers::{completion, stream_head};
use super::{Gate, Line, Reply};

/// The steps of an answer that streams. Without an end of its own it ends as HTTP requires.
#[derive(Debug, Clone)]
pub struct Streaming {
    steps: Vec<Step>,
    end: End,
}

#[derive(Debug, Clone)]
enum Step {
    Say(Vec<u8>),
    Wait(Gate),
    Pause(Duration),
}

/// End after the last step.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// The body ends.
    Whole,
    /// The connection closes before the body has ended.
    Cut,
    /// The same with a reset.
    Reset,
    /// No byte comes any more, until the client hangs up.
    Silence,
}

impl Streaming {
    /// An answer without steps.
    #[must_use]
    pub const fn new() -> Self {
        Self { steps: Vec::new(), end: End::Whole }
    }

    /// A whole stream of the first choice, as OpenAI sends it: these pieces, the end, usage as
    /// [`completion`] has it, and the word that it is over.
    #[must_use]
    pub fn saying(pieces: &[&str]) -> Self {
        let said = pieces.iter().fold(Self::new().opening(), |stream, piece| stream.text(piece));
        said.finish("stop").usage().done()
    }

    /// The chunk that opens the first choice.
    #[must_use]
    pub fn opening(self) -> Self {
        self.delta(&json!({"role": "assistant", "content": "", "refusal": null}))
    }

    /// A chunk with more text.
    #[must_use]
    pub fn text(self, piece: &str) -> Self {
        self.delta(&json!({"content": piece, "x_extra": "mark-of-extra"}))
    }

    /// A chunk of the first choice.
    #[must_use]
    pub fn delta(self, delta: &Value) -> Self {
        self.choice(&json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}))
    }

    /// The chunk that ends the first choice.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.choice(&json!({"index": 0, "delta": {}, "logprobs": null, "finish_reason": reason}))
    }

    /// A chunk with this choice.
    #[must_use]
    pub fn choice(self, choice: &Value) -> Self {
        let mut chunk = head();
        chunk["choices"] = json!([choice]);
        chunk["usage"] = Value::Null;
        self.event(&chunk)
    }

    /// The chunk with the usage, as [`completion`] has it.
    #[must_use]
    pub fn usage(self) -> Self {
        self.used(&completion("")["usage"])
    }

    /// The chunk with this usage.
    #[must_use]
    pub fn used(self, usage: &Value) -> Self {
        let mut chunk = head();
        chunk["choices"] = json!([]);
        chunk["usage"] = usage.clone();
        self.event(&chunk)
    }

    /// An event with this JSON.
    #[must_use]
    pub fn event(self, data: &Value) -> Self {
        self.raw(&format!("data: {data}\n\n"))
    }

    /// The word that it is over.
    #[must_use]
    pub fn done(self) -> Self {
        self.raw("data: [DONE]\n\n")
    }

    /// Any bytes.
    #[must_use]
    pub fn raw(self, bytes: &str) -> Self {
        self.say_bytes(bytes.as_bytes().to_vec())
    }

    pub(super) fn say_bytes(mut self, bytes: Vec<u8>) -> Self {
        self.steps.push(Step::Say(bytes));
        self
    }

    /// Goes on when the gate is open.
    #[must_use]
    pub fn wait(mut self, gate: &Gate) -> Self {
        self.steps.push(Step::Wait(gate.clone()));
        self
    }

    /// Goes on after this time: a model that takes its time.
    #[must_use]
    pub fn pause(mut self, time: Duration) -> Self {
        self.steps.push(Step::Pause(time));
        self
    }

    /// The same, each byte in a chunk of its own.
    #[must_use]
    pub fn byte_by_byte(mut self) -> Self {
        let alone = |step: Step| match step {
            Step::Say(bytes) => bytes.into_iter().map(|byte| Step::Say(vec![byte])).collect(),
            Step::Wait(_) | Step::Pause(_) => vec![step],
        };
        self.steps = self.steps.into_iter().flat_map(alone).collect();
        self
    }

    /// The connection closes after so many bytes of the answer.
    #[must_use]
    pub fn cut_after(mut self, bytes: usize) -> Reply {
        let mut left = bytes;
        for step in &mut self.steps {
            if let Step::Say(said) = step {
                said.truncate(left);
                left -= said.len();
            }
        }
        self.cut()
    }

    /// Number of bytes of the answer.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let said = self.steps.iter().filter_map(|step| match step {
            Step::Say(bytes) => Some(bytes.len()),
            Step::Wait(_) | Step::Pause(_) => None,
        });
        said.sum()
    }

    /// The connection closes before the body has ended.
    #[must_use]
    pub fn cut(self) -> Reply {
        Reply::Stream(Self { end: End::Cut, ..self })
    }

    /// The connection is reset before the body has ended.
    #[must_use]
    pub fn reset(self) -> Reply {
        Reply::Stream(Self { end: End::Reset, ..self })
    }

    /// No byte is sent any more, until the client hangs up.
    #[must_use]
    pub fn silence(self) -> Reply {
        Reply::Stream(Self { end: End::Silence, ..self })
    }

    /// The reply.
    #[must_use]
    pub const fn reply(self) -> Reply {
        Reply::Stream(self)
    }
}

impl Default for Streaming {
    fn default() -> Self {
        Self::new()
    }
}

impl Streaming {
    /// Sends it on a connection, and returns how that ends; `None` if the client has gone.
    pub(super) fn say(&self, line: &mut impl Line) -> Option<End> {
        let mut write = |bytes: &[u8]| line.write_all(bytes).and_then(|()| line.flush()).ok();
        write(stream_head().as_bytes())?;
        for step in &self.steps {
            match step {
                Step::Say(bytes) if bytes.is_empty() => {}
                Step::Say(bytes) => {
                    let size = format!("{:x}\r\n", bytes.len());
                    write(&[size.as_bytes(), bytes, b"\r\n"].concat())?;
                }
                Step::Wait(gate) => gate.wait().then_some(())?,
                Step::Pause(time) => std::thread::sleep(*time),
            }
        }
        if matches!(self.end, End::Whole) {
            write(b"0\r\n\r\n")?;
        }
        Some(self.end)
    }
}

/// Members of every chunk, full of marks.
fn head() -> Value {
    json!({
        "id": "chatcmpl-mark-of-id",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "mark-of-model",
        "system_fingerprint": "mark-of-fingerprint",
        "service_tier": "mark-of-extra",
        "obfuscation": "mark-of-extra",
        "x_extra": {"provider": "mark-of-extra"},
    })
}
