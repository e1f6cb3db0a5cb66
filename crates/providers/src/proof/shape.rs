//! Shapes of error texts: a server's fixed wording, with marks for its variable parts.
//!
//! | mark | matches |
//! |---|---|
//! | `#` | a number, also with commas between its digits |
//! | `~` | a word: anything but white space, at least one character |
//! | `*` | any characters, or none |
//! | `$` | the end, perhaps after a full stop |
//!
//! A shape matches from the beginning of a text and never from its middle, because an error may quote
//! the prompt. Only [`core_of`] moves the beginning, past the known prefixes of relays and SDKs
//! before the text of another server.
//!
//! Texts and shapes are compared in one normal form: lower case, one blank for any white space,
//! without quotes and backslashes, because servers differ in all of these.

/// Length of the part of a text that is compared, in characters. No shape is half as long, and a text
/// may quote a whole prompt.
const SCANNED_MAX: usize = 1_024;

/// Maximum number of nested prefixes that are removed from one text.
const ENVELOPES_MAX: usize = 8;

/// Prefixes of relays, as shapes, before the text of another server.
const PHRASES: &[&str] = &[
    // Bedrock: an error of the model's own server.
    "the model returned the following errors:",
    // AWS's SDKs, in relays.
    "an error occurred (validationexception) when calling the ~ operation:",
    // OpenRouter.
    "provider returned error:",
    "upstream error from ~:",
    // text-generation-inference, and Together.
    "input validation error:",
    "validation error:",
    // Moonshot; MiniMax.
    "invalid request:",
    "invalid params,",
    // DashScope: `<400> InternalError.Algo.InvalidParameter: …`.
    "<#> internalerror.algo.invalidparameter:",
    "internalerror.algo.invalidparameter:",
    // OpenAI's SDKs, in relays.
    "error code: # -",
    "# bad request:",
    "bad request:",
    "400 ",
    "api error:",
];

/// Beginnings of an error object within a text, without blanks.
const OBJECTS: &[&str] = &[
    "{error:{",
    "[{error:{",
    "{object:error",
    "{type:error",
    "{message:",
    // Bedrock, of models that it serves by its own engine: an object as Rust prints it.
    "errorevent{error:apierror{",
];

/// Normal form of the beginning of a text.
pub(super) fn normal(text: &str) -> String {
    let mut normal = String::new();
    let mut read_on = text.chars();
    for read in read_on.by_ref().take(SCANNED_MAX) {
        match read {
            '\'' | '"' | '`' | '\\' | '\u{2018}'..='\u{201d}' => {}
            blank if blank.is_whitespace() => {
                if !normal.is_empty() && !normal.ends_with(' ') {
                    normal.push(' ');
                }
            }
            other => normal.extend(other.to_lowercase()),
        }
    }
    // What was cut off has no end, so that no shape with `$` fits it.
    if read_on.next().is_some() {
        normal.push_str(" \0");
    }
    normal
}

/// Returns `true` if the normalized text matches the shape from its beginning.
pub(super) fn fits(shape: &str, text: &str) -> bool {
    end_of(shape, text).is_some()
}

/// Returns `true` if the normalized text, with or without known prefixes, matches one of the shapes.
pub(super) fn any_fits(shapes: &[&str], text: &str) -> bool {
    let mut core = Some(text);
    for _envelope in 0..=ENVELOPES_MAX {
        let Some(text) = core else { return false };
        if shapes.iter().any(|shape| fits(shape, text)) {
            return true;
        }
        core = core_of(text);
    }
    false
}

/// Rest of a text after its outermost known prefix; `None` if it has no known prefix.
fn core_of(text: &str) -> Option<&str> {
    let phrase = PHRASES.iter().find_map(|phrase| end_of(phrase, text));
    let core = phrase.or_else(|| after_exception(text)).or_else(|| message_of_object(text))?;
    Some(core.trim_start())
}

/// Rest of a text after the name of an exception: `litellm.BadRequestError: …`, `OpenAIException - …`.
fn after_exception(text: &str) -> Option<&str> {
    let is_name = |read: char| read.is_ascii_alphanumeric() || read == '.' || read == '_';
    let rest = text.trim_start_matches(is_name);
    let name = text.strip_suffix(rest)?;
    let is_exception = name.ends_with("error") || name.ends_with("exception");
    let rest = rest.strip_prefix(": ").or_else(|| rest.strip_prefix(" - "));
    rest.filter(|_rest| is_exception)
}

/// Message of an error object, if the text is one.
fn message_of_object(text: &str) -> Option<&str> {
    // The longest of the beginnings, and some.
    let start: String = text.chars().filter(|read| *read != ' ').take(32).collect();
    let is_error = OBJECTS.iter().any(|object| start.starts_with(object));
    let (_before, message) = text.split_once("message:").filter(|_halves| is_error)?;
    Some(message)
}

/// Rest of a text after a match of the shape at its beginning.
fn end_of<'t>(shape: &str, text: &'t str) -> Option<&'t str> {
    let mut rest = shape.chars();
    let Some(mark) = rest.next() else { return Some(text) };
    let shape = rest.as_str();
    match mark {
        '$' => text.trim_end_matches(['.', ' ']).is_empty().then_some(""),
        '#' => end_of(shape, after_number(text)?),
        '*' => tails(text).find_map(|tail| end_of(shape, tail)),
        '~' => {
            let word = text.split(' ').next().filter(|word| !word.is_empty())?;
            let tails = tails(text).skip(1).take(word.chars().count());
            tails.into_iter().find_map(|tail| end_of(shape, tail))
        }
        plain => end_of(shape, text.strip_prefix(plain)?),
    }
}

/// All suffixes of a text, the longest first.
fn tails(text: &str) -> impl Iterator<Item = &str> {
    let ends = text.char_indices().map(|(at, _read)| at).chain([text.len()]);
    ends.filter_map(|at| text.get(at..))
}

fn after_number(text: &str) -> Option<&str> {
    let digits = |text: &str| -> usize { text.bytes().take_while(u8::is_ascii_digit).count() };
    let mut end = Some(digits(text)).filter(|digits| *digits > 0)?;
    while let Some(more) = text.get(end..).and_then(|rest| rest.strip_prefix(',')) {
        match digits(more) {
            0 => break,
            more => end = end.saturating_add(more).saturating_add(1),
        }
    }
    text.get(end..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(shape: &str, text: &str, expected: bool) {
        assert_eq!(any_fits(&[shape], &normal(text)), expected, "{shape}: {text}");
    }

    #[test]
    fn marks_stand_for_numbers_words_anything_and_the_end() {
        check("at most # tokens", "At most\n 131,072  tokens, no more", true);
        check("at most # tokens", "At most many tokens", false);
        check("too long: #, maximum", "too long: 9, maximum 8", true);
        check("model ~ not found$", "Model `acme/large:free` not found.", true);
        check("model ~ not found$", "Model acme large not found", false);
        check("model ~ not found$", "Model a not found, try again", false);
        check("count*exceeds # of#$", "count of 7 exceeds 5 of5", true);
        check("count*exceeds", "count", false);
        check("$", " . ", true);
        check("", "anything", true);
        check("~", "", false);
    }

    #[test]
    fn a_shape_never_matches_in_the_middle_of_a_text() {
        let shape = "prompt is too long: #";
        check(shape, "Prompt is too long: 9 tokens > 8 maximum", true);
        for quoting in [
            "Invalid value: 'prompt is too long: 9'",
            "Invalid message {\"role\": \"user\", \"message\": \"prompt is too long: 9\"}",
            "{\"role\": \"user\", \"message\": \"prompt is too long: 9\"} is no message",
            "The text prompt is too long: 9",
            "see error: prompt is too long: 9",
        ] {
            check(shape, quoting, false);
        }
    }

    #[test]
    fn known_prefixes_of_relays_are_removed() {
        let shape = "prompt is too long: #";
        for around in [
            "The model returned the following errors: prompt is too long: 9",
            "An error occurred (ValidationException) when calling the Converse operation: The model \
             returned the following errors: prompt is too long: 9",
            "litellm.BadRequestError: AnthropicException - {\"error\":{\"type\":\"x\",\"message\":\
             \"prompt is too long: 9\"}}. Received Model Group=a",
            "Error code: 400 - {'error': {'message': 'prompt is too long: 9'}}",
            "400 Bad Request: prompt is too long: 9",
            "{\n  \"error\": {\n    \"message\": \"prompt is too long: 9\" } }",
            "ErrorEvent { error: APIError { code: Some(400), message: \"prompt is too long: 9\" } }",
        ] {
            check(shape, around, true);
        }
        let deep = "Bad request: ".repeat(ENVELOPES_MAX);
        check(shape, &format!("{deep}prompt is too long: 9"), true);
        check(shape, &format!("{deep}Bad request: prompt is too long: 9"), false);
    }

    #[test]
    fn only_the_beginning_of_a_long_text_is_compared() {
        let text = format!("it{}", " ".repeat(2) + &"x".repeat(100_000));
        assert_eq!(normal(&text).len(), SCANNED_MAX + 1);
        let word = "x".repeat(SCANNED_MAX - 4);
        check("it ~$", &format!("it {word}"), true);
        check("it ~$", &format!("it {word}x is not all"), false);
        check("it *end", &format!("it {} end", "x ".repeat(50_000)), false);
    }
}
