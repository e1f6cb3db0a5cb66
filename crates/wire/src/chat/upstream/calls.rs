//! The tool calls of one choice while they come in pieces. Providers number them, name them, or do neither,
//! and some tell a call's id and name with every piece of it.

use holdfast_domain::answer::ToolCallDelta;
use holdfast_domain::request::ToolKind;

use super::answer::Unreadable;
use super::choice;
use crate::json::Node;

/// Calls in the order in which they began: what they are numbered by here.
#[derive(Default)]
pub(super) struct Calls(Vec<Call>);

/// What is known of a call from its pieces.
struct Call {
    /// Its number at the provider, where it has one.
    number: Option<u32>,
    /// Its id there: it stays behind.
    id: String,
    name: String,
    kind: ToolKind,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody is called whom nobody knows.
    pub(super) fn has_nameless(&self) -> bool {
        self.0.iter().any(|call| call.name.is_empty())
    }

    /// What the calls gained by a delta, each once.
    pub(super) fn gain(&mut self, delta: &Node<'_>) -> Result<Vec<ToolCallDelta>, Unreadable> {
        let Some(pieces) = delta.get("tool_calls") else { return Ok(Vec::new()) };
        let mut gained: Vec<ToolCallDelta> = Vec::new();
        for piece in pieces.as_array().ok_or(Unreadable::ToolCalls)? {
            let Some(more) = self.piece(piece)? else { continue };
            match gained.iter_mut().find(|known| known.index == more.index) {
                Some(known) => {
                    append(&mut known.name, more.name);
                    append(&mut known.input, more.input);
                }
                None => gained.push(more),
            }
        }
        Ok(gained)
    }

    fn piece(&mut self, piece: &Node<'_>) -> Result<Option<ToolCallDelta>, Unreadable> {
        let text = |name| piece.get(name).and_then(Node::as_str).unwrap_or_default();
        let number = match piece.get("index") {
            None => None,
            Some(number) => {
                let number = number.as_number().and_then(|number| number.parse().ok());
                Some(number.ok_or(Unreadable::ToolCalls)?)
            }
        };
        let kind = match text("type") {
            "" if piece.get("custom").is_some() => Some(ToolKind::Custom),
            "" => None,
            "function" => Some(ToolKind::Function),
            "custom" => Some(ToolKind::Custom),
            _ => return Err(Unreadable::ToolCalls),
        };
        let called = kind.map(ToolKind::label).or(Some("function"));
        let called = called.and_then(|member| piece.get(member));
        let name = called.and_then(|called| called.get("name")?.as_str()).unwrap_or_default();
        let (at, is_new) = self.find(number, text("id"), name, kind)?;
        let call = self.0.get_mut(at).ok_or(Unreadable::ToolCalls)?;
        if call.id.is_empty() {
            text("id").clone_into(&mut call.id);
        }
        let name = Some(name).filter(|name| !name.is_empty() && *name != call.name);
        call.name.push_str(name.unwrap_or_default());
        let input = called.and_then(|called| called.get(input_name(call.kind)));
        let input = Some(choice::input_text(input)?).filter(|input| !input.is_empty());
        let is_news = is_new || name.is_some() || input.is_some();
        let index = u32::try_from(at).map_err(|_too_many| Unreadable::ToolCalls)?;
        Ok(is_news.then(|| ToolCallDelta {
            index,
            kind: is_new.then_some(call.kind),
            name: name.map(str::to_owned),
            input,
            state: None,
        }))
    }

    /// The call that a piece belongs to, and whether it begins it: by its number, but a name with another
    /// id under the same number is another call (some make an id for every piece); else by its id; else a piece with a name begins a call and one
    /// without goes on with the last.
    fn find(
        &mut self,
        number: Option<u32>,
        id: &str,
        name: &str,
        kind: Option<ToolKind>,
    ) -> Result<(usize, bool), Unreadable> {
        let is_other = |call: &Call| {
            !name.is_empty() && !id.is_empty() && !call.id.is_empty() && call.id != id
        };
        let found = match number {
            Some(_) => self.0.iter().rposition(|call| call.number == number),
            None if !id.is_empty() => self.0.iter().rposition(|call| call.id == id),
            None if name.is_empty() => self.0.len().checked_sub(1),
            None => None,
        };
        let found = found.filter(|at| !self.0.get(*at).is_some_and(is_other));
        if let Some(at) = found {
            return Ok((at, false));
        }
        if number.is_none() && id.is_empty() && name.is_empty() {
            return Err(Unreadable::ToolCalls);
        }
        let kind = kind.unwrap_or(ToolKind::Function);
        self.0.push(Call { number, id: id.to_owned(), name: String::new(), kind });
        Ok((self.0.len().saturating_sub(1), true))
    }
}

const fn input_name(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Function => "arguments",
        ToolKind::Custom => "input",
    }
}

fn append(to: &mut Option<String>, more: Option<String>) {
    match (to.as_mut(), more) {
        (Some(text), Some(more)) => text.push_str(&more),
        (None, more) => *to = more,
        (Some(_), None) => {}
    }
}
