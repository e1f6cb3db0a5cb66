//! One turn of a conversation: texts by the four roles that are known here.

use holdfast_domain::request::{Content, Message, Role};

use super::BadRequest;
use super::field::{Field, Path};
use crate::json::Node;

pub(super) fn read(field: Field<'_, '_>) -> Result<Message, BadRequest> {
    let path = field.path;
    let members = field.members("an object")?;
    // The role first, wherever it stands: it says which of the others there may be.
    let role_path = Path::Member(&path, "role");
    let (_, role) =
        members.iter().find(|(name, _)| name == "role").ok_or_else(|| role_path.missing())?;
    let role = read_role(&role_path, role)?;
    let (mut name, mut content) = (None, None);
    for (member, node) in members {
        let field = Field { path: Path::Member(&path, &member), node };
        match &*member {
            "role" => {}
            "name" => name = field.optional_string()?,
            "content" => content = read_content(field)?,
            "refusal" | "audio" | "function_call"
                if role == Role::Assistant && field.node == Node::Null => {}
            "tool_calls" if role == Role::Assistant && calls_nothing(&field.node) => {}
            _ => return Err(field.path.unknown()),
        }
    }
    // An assistant's turn may do without only where it calls tools, which are not known here.
    let content = content.ok_or_else(|| Path::Member(&path, "content").missing())?;
    Ok(Message { role, name, content: Some(content) })
}

fn read_role(path: &Path<'_>, node: &Node<'_>) -> Result<Role, BadRequest> {
    const ROLES: &str = "developer, system, user or assistant";
    let roles = [Role::Developer, Role::System, Role::User, Role::Assistant];
    let label = match node {
        Node::String(label) => &**label,
        Node::Null | Node::Bool(_) | Node::Number(_) | Node::Array(_) | Node::Object(_) => "",
    };
    if let "tool" | "function" = label {
        return Err(path.unknown_value(ROLES));
    }
    let role = roles.into_iter().find(|role| role.label() == label);
    role.ok_or_else(|| path.invalid(format_args!("{ROLES}")))
}

/// Some clients send what they do not use.
fn calls_nothing(tool_calls: &Node<'_>) -> bool {
    match tool_calls {
        Node::Null => true,
        Node::Array(calls) => calls.is_empty(),
        Node::Bool(_) | Node::Number(_) | Node::String(_) | Node::Object(_) => false,
    }
}

/// One bare text part is the same as a string; several are kept apart.
fn read_content(field: Field<'_, '_>) -> Result<Option<Content>, BadRequest> {
    let path = field.path;
    let parts = match field.node {
        Node::Null => return Ok(None),
        Node::String(text) => return Ok(Some(Content::Text(text.into_owned()))),
        Node::Array(parts) => parts,
        Node::Bool(_) | Node::Number(_) | Node::Object(_) => Vec::new(),
    };
    let part = |(at, node)| read_part(Field { path: Path::Element(&path, at), node });
    let mut texts = parts.into_iter().enumerate().map(part).collect::<Result<Vec<_>, _>>()?;
    if texts.len() > 1 {
        return Ok(Some(Content::Parts(texts)));
    }
    let one = texts.pop().map(Content::Text);
    one.map(Some).ok_or_else(|| path.invalid(format_args!("a string or an array of text parts")))
}

fn read_part(field: Field<'_, '_>) -> Result<String, BadRequest> {
    let path = field.path;
    let members = field.members("an object with `type` and `text`")?;
    let kind_path = Path::Member(&path, "type");
    match members.iter().find(|(name, _)| name == "type").map(|(_, kind)| kind) {
        Some(Node::String(kind)) if kind == "text" => {}
        Some(Node::String(kind))
            if ["image_url", "input_audio", "file", "refusal"].contains(&&**kind) =>
        {
            return Err(kind_path.unknown_value("text"));
        }
        Some(_) => return Err(kind_path.invalid(format_args!("text"))),
        None => return Err(kind_path.missing()),
    }
    let mut text = None;
    for (member, node) in members {
        let field = Field { path: Path::Member(&path, &member), node };
        match &*member {
            "type" => {}
            "text" => text = Some(field.string()?.into_owned()),
            _ => return Err(field.path.unknown()),
        }
    }
    text.ok_or_else(|| Path::Member(&path, "text").missing())
}
