//! Refusals of what a provider cannot do, named by the field that asks for it; and readers of a
//! request that several kinds share.

use std::borrow::Cow;
use std::collections::BTreeSet;

use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{Decimal, Function, Opaque, Request, Tool, ToolChoice, ToolMode};
use holdfast_wire::json::{Draft, Node, parse};

/// The rule for a field that has no place there.
pub(crate) const LEFT_OUT: &str = "left out for this model";

/// The schema of a function without parameters, where one must be there.
pub(crate) const NO_PARAMETERS: &str = r#"{"type":"object","properties":{}}"#;

/// `rule` ends the sentence "It must be …".
pub(crate) const fn unsupported(param: String, rule: &'static str) -> UnsupportedParam {
    UnsupportedParam { param, rule: Cow::Borrowed(rule) }
}

/// The first of these fields that asks for something, if any does.
pub(crate) fn refuse<const N: usize>(
    fields: [(&str, bool, &'static str); N],
) -> Result<(), UnsupportedParam> {
    match fields.into_iter().find(|(_, asks, _)| *asks) {
        Some((param, _, rule)) => Err(unsupported(param.to_owned(), rule)),
        None => Ok(()),
    }
}

/// Says if a number is there and is not its default.
pub(crate) fn is_non_default(number: Option<Decimal>, default: i32) -> bool {
    number.is_some_and(|number| !number.is_within(default, default))
}

/// The functions on offer that may be called.
pub(crate) fn callable_functions(request: &Request) -> Result<Vec<&Function>, UnsupportedParam> {
    let allowed = allowed_names(request)?;
    let is_allowed = |name: &str| allowed.as_ref().is_none_or(|names| names.contains(name));
    let mut offered = Vec::with_capacity(request.tools.len());
    for (at, tool) in request.tools.iter().enumerate() {
        match tool {
            Tool::Function(function) if is_allowed(&function.name) => offered.push(function),
            Tool::Function(_) => {}
            Tool::Custom(_) => {
                return Err(unsupported(format!("tools[{at}].type"), "function for this model"));
            }
        }
    }
    Ok(offered)
}

/// The extra fields of a request as they are. One that is written anyway would stand there twice.
pub(crate) fn extras<'a>(
    request: &'a Request,
    written: &[&str],
) -> Result<Vec<(&'a str, Draft<'a>)>, UnsupportedParam> {
    let extra = |(name, value): (&'a String, &'a Opaque)| match written.contains(&name.as_str()) {
        true => Err(unsupported(name.clone(), LEFT_OUT)),
        false => Ok((name.as_str(), value.into())),
    };
    request.extras.iter().map(extra).collect()
}

/// The functions that may be called where only some of those on offer may. A choice among no tools,
/// or of one that is not on offer, is refused.
fn allowed_names(request: &Request) -> Result<Option<BTreeSet<String>>, UnsupportedParam> {
    const RULE: &str = "one of the functions in `tools` for this model";
    let is_offered = |name: &str| {
        let mut names = request.tools.iter().map(|tool| match tool {
            Tool::Function(function) => &function.name,
            Tool::Custom(custom) => &custom.name,
        });
        names.any(|offered| offered == name)
    };
    let refused = || Err(unsupported("tool_choice".to_owned(), RULE));
    match &request.tool_choice {
        None | Some(ToolChoice::Mode(ToolMode::None | ToolMode::Auto)) => Ok(None),
        Some(ToolChoice::Mode(ToolMode::Required)) if !request.tools.is_empty() => Ok(None),
        Some(ToolChoice::Named { name, .. }) if is_offered(name) => Ok(None),
        Some(ToolChoice::Mode(ToolMode::Required) | ToolChoice::Named { .. }) => refused(),
        Some(ToolChoice::Allowed { tools, .. }) => {
            let mut names = BTreeSet::new();
            for tool in tools {
                let node = parse(tool.as_str().as_bytes()).ok();
                let function = node.as_ref().and_then(|node| node.get("function"));
                let name = function.and_then(|function| function.get("name")?.as_str());
                match name.filter(|name| is_offered(name)) {
                    Some(name) => names.insert(name.to_owned()),
                    None => return refused(),
                };
            }
            if names.is_empty() { refused() } else { Ok(Some(names)) }
        }
    }
}

/// The arguments of an earlier call as the object that they must be; none are an empty one.
pub(crate) fn arguments(text: &str) -> Option<&str> {
    if text.trim().is_empty() {
        return Some("{}");
    }
    matches!(parse(text.as_bytes()), Ok(Node::Object(_))).then_some(text)
}

/// The media type, in lower case, and the base64 of a `data:` URL.
pub(crate) fn data_url(url: &str) -> Option<(String, &str)> {
    let (about, data) = url
        .split_at_checked(5)
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("data:"))?
        .1
        .split_once(',')?;
    let media = about.strip_suffix(";base64")?;
    let media = media.split_once(';').map_or(media, |(media, _parameters)| media);
    Some((media.to_ascii_lowercase(), data))
}
