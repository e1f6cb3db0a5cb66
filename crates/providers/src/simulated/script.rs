//! Directives for the simulated provider, read from the last user message of a prompt. Their
//! execution is the provider's.

use std::time::Duration;

use holdfast_domain::request::{Content, Request, Role};

/// The longest wait of a directive.
const SLOW_MAX: Duration = Duration::from_mins(10);

/// Course of a call, and the text that is left to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Script {
    /// To wait before anything else.
    pub(super) slow: Option<Duration>,
    /// To wait between two pieces of a stream.
    pub(super) pace: Option<Duration>,
    /// To fail once per prompt before anything was accepted.
    pub(super) fail_once: bool,
    /// End of the call, after the waits.
    pub(super) act: Action,
    /// The last user message without its directives.
    pub(super) text: String,
}

/// Treatment of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Answer and report usage.
    Answer,
    /// Refuse for good.
    Refuse,
    /// Refuse a prompt that is too long.
    ContextOverflow,
    /// Turn the call away before it is accepted.
    FailBefore,
    /// Accept it and send no more.
    FailAfter,
    /// Stop in the middle of the answer.
    Break,
    /// Fall silent in the middle of the answer.
    Stall,
    /// Answer without usage.
    NoUsage,
    /// Answer with counts beyond belief.
    AbsurdUsage,
    /// Answer with more usage than any hold was made for.
    Overrun,
}

/// A line that looks like a directive and is none, or contradicts an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BadScript {
    /// The message's place in the conversation.
    pub(super) message: usize,
    /// Text of the line, as far as it can be shown.
    pub(super) directive: String,
}

/// Characters of a directive that a refusal shows.
const SHOWN_CHARS_MAX: usize = 32;

impl Script {
    /// Reads the last user message. A line whose first word is `[[sim:` must be a directive; every
    /// other line is text.
    pub(super) fn of(request: &Request) -> Result<Self, BadScript> {
        let mut turns = request.messages.iter().enumerate().rev();
        let last = turns.find(|(_at, message)| message.role == Role::User);
        let (at, content) = last.map_or((0, None), |(at, message)| (at, message.content.as_ref()));
        let mut script = Self {
            slow: None,
            pace: None,
            fail_once: false,
            act: Action::Answer,
            text: String::new(),
        };
        let mut text = Vec::new();
        for line in content.into_iter().flat_map(Content::texts).flat_map(str::lines) {
            match line.trim().strip_prefix("[[sim:") {
                Some(rest) => {
                    let directive = rest.trim_end_matches(']').trim();
                    let obeyed = rest.ends_with("]]").then(|| script.apply(directive)).flatten();
                    obeyed
                        // Refused, not taken for text: a mistyped directive must show.
                        .ok_or_else(|| BadScript { message: at, directive: excerpt(directive) })?;
                }
                None => text.push(line),
            }
        }
        text.join("\n").trim().clone_into(&mut script.text);
        Ok(script)
    }

    /// Takes a directive; `None` for one that is none, or contradicts an earlier one.
    fn apply(&mut self, directive: &str) -> Option<()> {
        let act = match directive {
            "refuse" => Action::Refuse,
            "context-overflow" => Action::ContextOverflow,
            "fail-before" => Action::FailBefore,
            "fail-after" => Action::FailAfter,
            "break" => Action::Break,
            "stall" => Action::Stall,
            "no-usage" => Action::NoUsage,
            "absurd-usage" => Action::AbsurdUsage,
            "overrun" => Action::Overrun,
            "fail-before-once" if !self.fail_once => {
                self.fail_once = true;
                return Some(());
            }
            timed => return self.apply_timed(timed),
        };
        match std::mem::replace(&mut self.act, act) {
            Action::Answer => Some(()),
            Action::Refuse
            | Action::ContextOverflow
            | Action::FailBefore
            | Action::FailAfter
            | Action::Break
            | Action::Stall
            | Action::NoUsage
            | Action::AbsurdUsage
            | Action::Overrun => None,
        }
    }

    fn apply_timed(&mut self, directive: &str) -> Option<()> {
        let (what, wait) = directive.split_once(' ')?;
        let place = match what {
            "slow" => &mut self.slow,
            "pace" => &mut self.pace,
            _ => return None,
        };
        match place.replace(duration(wait)?) {
            None => Some(()),
            Some(_twice) => None,
        }
    }
}

/// The beginning of a directive, of what directives are made of.
fn excerpt(directive: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ' ';
    let chars = directive.chars().take(SHOWN_CHARS_MAX);
    chars.map(|c| if is_plain(c) { c } else { '?' }).collect()
}

/// A whole number of `ms`, `s` or `m`.
fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.trim().split_at_checked(text.trim().find(char::is_alphabetic)?)?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    let wait = Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(millis)?);
    (wait <= SLOW_MAX).then_some(wait)
}
