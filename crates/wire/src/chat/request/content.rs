//! Content of a turn: a string, or parts of the kinds that its role may use.

use holdfast_domain::request::{
    BreakpointTtl, CacheBreakpoint, Content, ContentPart, ImageDetail, Item, RecordingFormat,
};

use super::BadRequest;
use super::address::names_inside;
use super::field::{self, Field, Path};
use super::object::Object;
use crate::json::Node;

pub(super) const TEXT: &[&str] = &["text"];
pub(super) const TEXT_OR_REFUSAL: &[&str] = &["text", "refusal"];
pub(super) const ANY: &[&str] = &["text", "image_url", "input_audio", "file"];
/// The members of a part: suggestions for a mistyped one.
pub(super) const MEMBERS: [&str; 7] =
    ["type", "text", "image_url", "input_audio", "file", "refusal", "prompt_cache_breakpoint"];

/// Reads content of these kinds of parts. One bare text part is the same as a string; several are
/// kept apart.
pub(super) fn read(
    field: Field<'_, '_>,
    kinds: &'static [&'static str],
) -> Result<Content, BadRequest> {
    if let Node::String(text) = field.node {
        return Ok(Content::Text(text.into_owned()));
    }
    let what = "a string or an array of at least one part";
    let mut parts = field.array(1..=usize::MAX, what, |field| part(field, kinds))?;
    // The two spellings of one text are one request. Where several parts are cut is part of the question.
    if parts.len() == 1
        && let Some(ContentPart { item: Item::Text(text), .. }) =
            parts.pop_if(|part| part.is_bare_text())
    {
        return Ok(Content::Text(text));
    }
    Ok(Content::Parts(parts))
}

fn part(field: Field<'_, '_>, kinds: &'static [&'static str]) -> Result<ContentPart, BadRequest> {
    let mut part = Object::read(field, "an object with a `type`")?;
    let kind = part.required("type", |field| field.one_of(kinds, |kind| kind))?;
    let item = match kind {
        "image_url" => part.required("image_url", image)?,
        "input_audio" => part.required("input_audio", recording)?,
        "file" => part.required("file", file)?,
        "refusal" => Item::Refusal(part.required("refusal", field::string)?),
        _ => Item::Text(part.required("text", field::string)?),
    };
    // A refusal has no such member in OpenAI's schema: there it is a member that is not known.
    let cache_breakpoint = if matches!(item, Item::Refusal(_)) {
        None
    } else {
        part.optional_or_empty("prompt_cache_breakpoint", cache_breakpoint)?
    };
    Ok(ContentPart { item, cache_breakpoint, extras: part.extras() })
}

/// A picture by its URL. Other schemes would name files of the provider's own machine, and some
/// hosts its own services.
fn image(field: Field<'_, '_>) -> Result<Item, BadRequest> {
    const SCHEMES: [&str; 3] = ["https://", "http://", "data:"];
    let mut image = Object::read(field, "an object with `url`")?;
    let url = image.required("url", |field| {
        let path = field.path;
        let url = field::string(field)?;
        let begins = |scheme: &&str| {
            // `get`, because a character of several bytes may stand across this end.
            url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        };
        if !SCHEMES.iter().any(begins) {
            return Err(path.invalid(format_args!("an https:, http: or data: URL")));
        }
        if names_inside(&url) {
            return Err(path.invalid(format_args!(
                "the address of a public host: not of the machine itself or of its own link"
            )));
        }
        Ok(url)
    })?;
    let detail = image.optional_or_empty("detail", |field| {
        // `auto` is the default: a request with it and one without have to be equal.
        if field.node.as_str() == Some("auto") {
            return Ok(None);
        }
        field.one_of(ImageDetail::ALL, ImageDetail::label).map(Some)
    })?;
    // Some clients name the media type twice. A `data:` URL has its own, which is the one that providers
    // are sent; of a picture on the web its server has the last word.
    image.optional_or_empty("format", |field| field::text(field).map(drop))?;
    image.end()?;
    Ok(Item::Image { url, detail: detail.flatten() })
}

fn recording(field: Field<'_, '_>) -> Result<Item, BadRequest> {
    let mut recording = Object::read(field, "an object with `data` and `format`")?;
    let data = recording.required("data", field::string)?;
    let format = recording
        .required("format", |field| field.one_of(RecordingFormat::ALL, RecordingFormat::label))?;
    recording.end()?;
    Ok(Item::Audio { data, format })
}

fn file(field: Field<'_, '_>) -> Result<Item, BadRequest> {
    let mut file = Object::read(field, "an object with `file_id` or `file_data`")?;
    let id = file.optional("file_id", field::string)?;
    let name = file.optional("filename", field::string)?;
    let data = file.optional("file_data", field::string)?;
    // A name alone is no file.
    if id.is_none() && data.is_none() {
        return Err(Path::Member(&file.path, "file_data").missing());
    }
    file.end()?;
    Ok(Item::File { id, name, data })
}

fn cache_breakpoint(field: Field<'_, '_>) -> Result<CacheBreakpoint, BadRequest> {
    let mut mark = Object::read(field, "an object with `mode`")?;
    mark.required("mode", |field| field.one_of(&["explicit"], |mode| mode))?;
    let ttl = mark
        .optional_or_empty("ttl", |field| field.one_of(BreakpointTtl::ALL, BreakpointTtl::label))?;
    mark.end()?;
    Ok(CacheBreakpoint { ttl })
}
