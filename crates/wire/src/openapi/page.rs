//! Page of the OpenAPI document: plain HTML and one sheet of style.
//!
//! * No resource comes from another server and there is no script: it reads the same without a network, and its
//!   `Content-Security-Policy` allows only one hash of a style.
//! * Every string of the document is escaped on its way into the page.
//! * Endpoints come in the order of use, those for programs last; required members come before
//!   optional ones; a schema with a name is linked and not repeated.

use serde_json::{Map, Value};

use super::{EXAMPLE_KEY, resolved};
use crate::error::Code;

/// Hash of the style sheet for a `Content-Security-Policy`: the only entry that it needs.
pub const STYLE_HASH: &str = "sha256-iCD2acF4ydV8xKEnQtVQSMgSAPQHh9NY+EYBeVKDr5k=";

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
a{color:#0b57d0}\
code,pre{font:.875em/1.4 ui-monospace,monospace}\
pre{overflow:auto;padding:.75rem;border:1px solid #8886;border-radius:.25rem;background:#8881}\
table{border-collapse:collapse;width:100%}\
th,td{text-align:left;vertical-align:top;padding:.25rem .5rem;border-top:1px solid #8886}\
section{margin-top:2.5rem}\
td p{margin:0}\
@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}a{color:#8ab4f8}}";

/// Beginnings of paths that people come for, in this order; those for programs come last.
const FIRST: [&str; 6] =
    ["/v1/chat/completions", "/v1/operations", "/v1/wallet", "/v1/models", "/healthz", "/readyz"];

/// The page of a document.
#[must_use]
pub fn page(document: &Value) -> Vec<u8> {
    let info = &document["info"];
    let title = escaped(text(&info["title"]));
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title} {}</h1>\n{}",
        escaped(text(&info["version"])),
        prose(&info["description"]),
    );
    page.push_str("<p>The same for programs: <a href=\"/openapi.json\">/openapi.json</a></p>\n");
    start(&mut page);
    let endpoints = endpoints(document);
    page.push_str("<nav>\n<h2>Endpoints</h2>\n<ul>\n");
    for (path, method, operation) in &endpoints {
        let id = escaped(text(&operation["operationId"]));
        let what = escaped(text(&operation["summary"]));
        put(
            &mut page,
            format_args!("<li><a href=\"#{id}\"><code>{method} {path}</code></a> {what}</li>\n"),
        );
    }
    page.push_str("</ul>\n<p><a href=\"#errors\">All errors</a>. Shapes:\n");
    for (name, _schema) in shapes(document) {
        let name = escaped(name);
        put(&mut page, format_args!("<a href=\"#{name}\">{name}</a>\n"));
    }
    page.push_str("</p>\n</nav>\n");
    for (path, method, operation) in &endpoints {
        endpoint(&mut page, document, (path, method, operation));
    }
    errors(&mut page);
    for (name, schema) in shapes(document) {
        let name = escaped(name);
        put(&mut page, format_args!("<section id=\"{name}\">\n<h2>{name}</h2>\n"));
        page.push_str(&shape(schema));
        page.push_str("\n</section>\n");
    }
    page.push_str("</body>\n</html>\n");
    page.into_bytes()
}

/// Section with a first call, and with what to do when no answer comes.
fn start(page: &mut String) {
    let key = EXAMPLE_KEY;
    put(
        page,
        format_args!(
            "<section id=\"start\">\n<h2>Call it</h2>\n\
             <pre>curl &quot;$HOLDFAST_URL/chat/completions&quot; \\\n  \
             -H &#39;Authorization: Bearer hfk_...&#39; \\\n  \
             -H &#39;Idempotency-Key: {key}&#39; \\\n  \
             -H &#39;Content-Type: application/json&#39; \\\n  \
             -d &#39;{{&quot;model&quot;: &quot;holdfast/sim-1&quot;, &quot;messages&quot;: \
             [{{&quot;role&quot;: &quot;user&quot;, &quot;content&quot;: &quot;hello&quot;}}]}}&#39;</pre>\n"
        ),
    );
    page.push_str(START);
}

const START: &str = "\
<ul>\n\
<li><code>HOLDFAST_URL</code> is the address of this page with <code>/v1</code> in the place of <code>/docs</code>, and the \
<code>base_url</code> of OpenAI&#39;s libraries.</li>\n\
<li><code>Authorization: Bearer</code> and an API key, once. OpenAI&#39;s libraries send it as their <code>api_key</code>.</li>\n\
<li><code>Idempotency-Key</code>: a new UUIDv4 in lower case for each request, for each call and never for a whole client: \
<code>extra_headers={&quot;Idempotency-Key&quot;: str(uuid.uuid4())}</code> in Python, \
<code>{headers: {&#39;Idempotency-Key&#39;: crypto.randomUUID()}}</code> as the second argument in Node, \
<code>$(cat /proc/sys/kernel/random/uuid)</code> in a shell of Linux.</li>\n\
</ul>\n\
<h3>Again, or not</h3>\n\
<table>\n\
<tr><th>what you got</th><th>what to do</th></tr>\n\
<tr><td>no answer: a time-out, or a connection that broke</td>\
<td>The same body with the same key. It gets the answer of the one run, and is paid once.</td></tr>\n\
<tr><td>an error with <code>x-should-retry: true</code></td>\
<td>The same body with the same key, after <code>retry-after</code>.</td></tr>\n\
<tr><td><code>idempotency_key_conflict</code></td>\
<td>The key belongs to another body. Make a new one for each call.</td></tr>\n\
<tr><td>another error with an <code>operation_id</code></td>\
<td>The key is bound: anything else, also a corrected body, wants a new key.</td></tr>\n\
<tr><td>another error</td>\
<td>Correct the request. Nothing ran, and the key may be used for it.</td></tr>\n\
</table>\n\
</section>\n";

/// Every error with what becomes of its key.
fn errors(page: &mut String) {
    page.push_str(
        "<section id=\"errors\">\n<h2>Errors</h2>\n<table>\n<tr><th>status</th><th>code</th>\
         <th>again with the same key</th><th>the key</th></tr>\n",
    );
    for code in Code::ALL {
        let again = match (code.retry(), code.may_pass()) {
            (true, _) => "yes",
            (false, true) => "no; yes while held",
            (false, false) => "no",
        };
        let (status, label, key) = (code.status(), code.label(), code.key_effect().label());
        put(
            page,
            format_args!(
                "<tr><td>{status}</td><td><code>{label}</code></td><td>{again}</td><td>{key}</td></tr>\n"
            ),
        );
    }
    page.push_str("</table>\n</section>\n");
}

fn shapes(document: &Value) -> impl Iterator<Item = (&str, &Value)> {
    document.pointer("/components/schemas").into_iter().flat_map(members)
}

/// Escaped path, escaped method in capitals, operation.
fn endpoints(document: &Value) -> Vec<(String, String, &Value)> {
    let place = |path: &str| FIRST.iter().position(|first| path.starts_with(first));
    let mut paths: Vec<_> = members(&document["paths"]).collect();
    // A stable sort: paths of one beginning keep the order of the document.
    paths.sort_by_key(|(path, _)| place(path).unwrap_or(FIRST.len()));
    let methods = paths.into_iter().flat_map(|(path, methods)| {
        members(methods).map(move |(method, operation)| (path, method, operation))
    });
    methods
        .map(|(path, method, operation)| {
            (escaped(path), escaped(&method.to_uppercase()), operation)
        })
        .collect()
}

fn endpoint(page: &mut String, document: &Value, (path, method, operation): (&str, &str, &Value)) {
    let id = escaped(text(&operation["operationId"]));
    put(page, format_args!("<section id=\"{id}\">\n<h2><code>{method} {path}</code></h2>\n"));
    page.push_str(&prose(&operation["summary"]));
    page.push_str(&prose(&operation["description"]));
    let is_secured = operation["security"].as_array().is_some_and(|all| !all.is_empty());
    let wanted = if is_secured { "Requires an API key." } else { "Requires no API key." };
    put(page, format_args!("<p>{wanted}</p>\n"));
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    if !parameters.is_empty() {
        page.push_str("<h3>Parameters</h3>\n<table>\n");
        for parameter in parameters.iter().map(|it| resolved(document, it)) {
            let is_required = parameter["required"] == true;
            put(
                page,
                format_args!(
                    "<tr><th><code>{}</code></th><td>{}, {}</td><td>{}{}</td></tr>\n",
                    escaped(text(&parameter["name"])),
                    escaped(text(&parameter["in"])),
                    if is_required { "required" } else { "optional" },
                    prose(&parameter["description"]),
                    shape(&parameter["schema"]),
                ),
            );
        }
        page.push_str("</table>\n");
    }
    if operation["requestBody"].is_object() {
        page.push_str("<h3>Body</h3>\n");
        content(page, &operation["requestBody"]);
    }
    page.push_str("<h3>Answers</h3>\n<table>\n");
    for (status, answer) in members(&operation["responses"]) {
        let answer = resolved(document, answer);
        put(page, format_args!("<tr><th>{}</th><td>\n", escaped(status)));
        page.push_str(&prose(&answer["description"]));
        content(page, answer);
        page.push_str("</td></tr>\n");
    }
    page.push_str("</table>\n</section>\n");
}

fn content(page: &mut String, of: &Value) {
    for (media, content) in members(&of["content"]) {
        put(page, format_args!("<div><code>{}</code> ", escaped(media)));
        page.push_str(&shape(&content["schema"]));
        page.push_str("</div>\n");
        if !content["example"].is_null() {
            let example = escaped(&format!("{:#}", content["example"]));
            put(page, format_args!("<pre>{example}</pre>\n"));
        }
    }
}

/// A schema: a link, its words, its bounds, or a table of its members.
fn shape(schema: &Value) -> String {
    if let Some(path) = schema["$ref"].as_str() {
        let name = escaped(path.rsplit('/').next().unwrap_or(path));
        return format!("<a href=\"#{name}\">{name}</a>{}", prose(&schema["description"]));
    }
    let joined = [("anyOf", " or "), ("oneOf", " or "), ("allOf", " with ")];
    let shapes =
        joined.iter().find_map(|(name, word)| Some((schema.get(name)?.as_array()?, *word)));
    let mut html = prose(&schema["description"]);
    if let Some((path, only)) = only_member(schema) {
        // A table of one row says no more than this.
        put(&mut html, format_args!("<code>{}</code>: {}", escaped(&path), shape(only)));
    } else if let Some(properties) = schema["properties"].as_object() {
        html.push_str(&table(properties, &schema["required"]));
    } else if let Some((shapes, word)) = shapes {
        let shapes: Vec<String> = shapes.iter().map(shape).collect();
        html.push_str(&shapes.join(word));
    } else {
        html.push_str(&plain(schema));
    }
    html
}

/// The path to the subject of a schema of single members.
fn only_member(schema: &Value) -> Option<(String, &Value)> {
    let properties = schema["properties"].as_object().filter(|all| all.len() == 1)?;
    let (name, member) = properties.iter().next()?;
    Some(match only_member(member) {
        Some((path, only)) => (format!("{name}.{path}"), only),
        None => (name.clone(), member),
    })
}

fn table(properties: &Map<String, Value>, required: &Value) -> String {
    let is_required = |name: &str| {
        required.as_array().is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
    };
    let mut html = "<table>\n".to_owned();
    // What is required comes first.
    for wanted in [true, false] {
        for (name, schema) in properties.iter().filter(|(name, _)| is_required(name) == wanted) {
            let mark = if wanted { " (required)" } else { "" };
            let name = escaped(name);
            put(
                &mut html,
                format_args!(
                    "<tr><th><code>{name}</code>{mark}</th><td>{}</td></tr>\n",
                    shape(schema)
                ),
            );
        }
    }
    html.push_str("</table>\n");
    html
}

fn plain(schema: &Value) -> String {
    let mut html = if let Some(all) = schema["enum"].as_array() {
        let all: Vec<String> =
            all.iter().map(|one| format!("<code>{}</code>", escaped(&one.to_string()))).collect();
        all.join(" or ")
    } else {
        let one = std::slice::from_ref(&schema["type"]);
        let kinds = schema["type"].as_array().map_or(one, Vec::as_slice);
        let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
        if kinds.is_empty() { "anything".to_owned() } else { escaped(&kinds.join(" or ")) }
    };
    for (keyword, name) in [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minItems", "elements at least"),
        ("maxItems", "elements at most"),
        ("maxLength", "characters at most"),
        ("maxProperties", "members at most"),
        ("pattern", "pattern"),
        ("format", "format"),
    ] {
        if let Some(rule) = schema.get(keyword) {
            let rule = rule.as_str().map_or_else(|| rule.to_string(), str::to_owned);
            put(&mut html, format_args!(", {name} <code>{}</code>", escaped(&rule)));
        }
    }
    if schema["deprecated"] == true {
        html.push_str(", deprecated");
    }
    for (keyword, name) in [("items", "of"), ("additionalProperties", "members")] {
        if schema[keyword].is_object() {
            put(&mut html, format_args!(", {name}: {}", shape(&schema[keyword])));
        }
    }
    html
}

/// Paragraphs between empty lines; what stands in backticks is code.
fn prose(text: &Value) -> String {
    let paragraphs = text.as_str().unwrap_or("").split("\n\n").filter(|part| !part.is_empty());
    let mut html = String::new();
    for paragraph in paragraphs {
        html.push_str("<p>");
        for (at, part) in paragraph.split('`').enumerate() {
            let part = escaped(part);
            if at % 2 == 0 {
                html.push_str(&part);
            } else {
                put(&mut html, format_args!("<code>{part}</code>"));
            }
        }
        html.push_str("</p>\n");
    }
    html
}

fn put(html: &mut String, more: std::fmt::Arguments<'_>) {
    html.push_str(&more.to_string());
}

fn members(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            // Quotation marks too, because names go into attributes.
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::page;

    #[test]
    fn what_people_come_for_is_first_and_what_programs_look_at_is_last() {
        let html = String::from_utf8(page(&crate::openapi::document())).unwrap();
        let places = ["id=\"start\"", "id=\"createChatCompletion\"", "id=\"getOperation\""];
        let rest = ["id=\"getWallet\"", "id=\"listModels\"", "id=\"getHealth\"", "id=\"getDocs\""];
        let places = places.iter().chain(&rest).map(|id| html.find(id).expect(id));
        assert!(places.collect::<Vec<_>>().is_sorted());
    }

    #[test]
    fn a_chain_of_single_members_is_a_path_and_no_table() {
        let code = json!({"properties": {"error": {"properties": {"code": {"enum": ["busy"]}}}}});
        let html = super::shape(&code);
        assert_eq!(html, "<code>error.code</code>: <code>&quot;busy&quot;</code>");
    }

    #[test]
    fn nothing_of_the_document_is_taken_for_html() {
        let mark = "<script>'\"&</script>";
        let member =
            json!({"type": "string", "description": mark, "pattern": mark, "enum": [mark]});
        let content = json!({mark: {"schema": member, "example": {mark: mark}}});
        let operation = json!({
            "operationId": mark, "summary": mark, "description": mark,
            "parameters": [{"name": mark, "in": mark, "description": mark, "schema": member}],
            "requestBody": {"content": content},
            "responses": {mark: {"description": mark, "content": content}},
        });
        let document = json!({
            "info": {"title": mark, "version": mark, "description": mark},
            "paths": {mark: {mark: operation}},
            "components": {"schemas": {mark: {"properties": {mark: member}, "description": mark}}},
        });
        let html = String::from_utf8(page(&document)).unwrap();
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script"), "{html}");
        assert!(!html.contains("</script"), "{html}");
        // Capitals of a method escape nothing.
        assert!(!html.contains("<SCRIPT"), "{html}");
    }
}
