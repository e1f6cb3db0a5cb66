//! Brand of holders' pages: the operator's name and logo, the address of customer support, and the address of
//! payment.
//!
//! Addresses are `https`, or `http` on this machine: a page with a password links to no page that a network may
//! change. The logo is read at the start, and served by the console itself.

use std::io::Read;
use std::path::Path;

use holdfast_domain::text;
use http::Uri;

use crate::document::{ConfigTable, Field};

/// Longest logo, in bytes.
const LOGO_MAX: u64 = 64 << 10;
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// `name`, `logo`, `support_url` and `top_up_url` of `[console]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BrandConfig {
    pub name: Option<String>,
    pub logo: Option<LogoFile>,
    pub support_url: Option<String>,
    pub top_up_url: Option<String>,
}

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogoFile {
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

/// `None` after a mistake.
pub(crate) fn brand(table: &ConfigTable<'_>) -> Option<BrandConfig> {
    let name = table.field("name").map(|field| field.parse(name));
    let logo = table.field("logo").map(|field| logo(&field));
    let support_url = table.field("support_url").map(|field| field.parse(link));
    let top_up_url = table.field("top_up_url").map(|field| field.parse(link));
    Some(BrandConfig {
        name: whole(name)?,
        logo: whole(logo)?,
        support_url: whole(support_url)?,
        top_up_url: whole(top_up_url)?,
    })
}

/// A value that was left out is none; one with a mistake is not.
fn whole<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    value.map_or(Some(None), |read| read.map(Some))
}

fn name(typed: &str) -> Result<String, String> {
    text::name(typed).map_err(|error| format!("not a name: {error}"))
}

/// An address that pages link to.
fn link(text: &str) -> Result<String, &'static str> {
    let bad = "no address for a link: write an https:// URL, or an http:// one of this machine";
    let uri: Uri = text.parse().ok().ok_or(bad)?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or(bad)?;
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let is_safe = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => is_here,
        Some(_) | None => false,
    };
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    let has_user = uri.authority().is_some_and(|it| it.as_str().contains('@'));
    if is_safe && is_plain && !has_user { Ok(text.to_owned()) } else { Err(bad) }
}

fn logo(field: &Field<'_>) -> Option<LogoFile> {
    let path = field.text()?;
    match read_logo(path) {
        Ok(logo) => Some(logo),
        Err(what) => {
            field.mistake(what);
            None
        }
    }
}

fn read_logo(path: &str) -> Result<LogoFile, String> {
    if !Path::new(path).is_absolute() {
        return Err(format!("names the file {path:?}: write its whole path, like /etc/logo.png"));
    }
    let unreadable = |error| format!("needs the file {path}, which cannot be read: {error}");
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let mut bytes = Vec::new();
    file.take(LOGO_MAX.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > LOGO_MAX) {
        return Err(format!("needs the file {path}, which is longer than 64 KiB"));
    }
    let media_type = media_type(&bytes).ok_or_else(|| {
        format!("needs the file {path}, which is no PNG and no SVG without a script")
    })?;
    Ok(LogoFile { media_type, bytes })
}

/// Kind of a picture by its content, independent of its name. An SVG with a script is refused, although the
/// console serves it under a policy that runs none.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    if bytes.starts_with(PNG) {
        return Some("image/png");
    }
    let text = std::str::from_utf8(bytes).ok()?.trim_start_matches('\u{feff}').trim_start();
    let lower = text.to_ascii_lowercase();
    let is_svg =
        lower.starts_with("<svg") || (lower.starts_with("<?xml") && lower.contains("<svg"));
    let is_active = ["<script", "javascript:", "<foreignobject", "<!entity"];
    (is_svg && !is_active.iter().any(|it| lower.contains(it))).then_some("image/svg+xml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_https_or_to_this_machine() {
        for good in
            ["https://help.example.com", "https://pay.example.com/a?b=c", "http://localhost:1/x"]
        {
            assert_eq!(link(good).as_deref(), Ok(good));
        }
        for bad in [
            "",
            "help",
            "http://help.example.com",
            "javascript:alert(1)",
            "mailto:a@b.example",
            "https://a@b.example",
            "https://",
            "https://a b",
            "https://a/\"x",
        ] {
            assert!(link(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn logos_are_pictures_that_run_nothing() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\nrest"), Some("image/png"));
        assert_eq!(media_type(b"<svg xmlns=\"x\"/>"), Some("image/svg+xml"));
        assert_eq!(media_type(b"\n<?xml version=\"1.0\"?>\n<SVG/>"), Some("image/svg+xml"));
        for bad in [
            "",
            "GIF89a",
            "<html>",
            "<svg><ScRipt>x</script></svg>",
            "<svg><a href=\"javascript:x\"/></svg>",
        ] {
            assert_eq!(media_type(bad.as_bytes()), None, "{bad}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logo.svg");
        std::fs::write(&path, "<svg/>").unwrap();
        assert_eq!(read_logo(path.to_str().unwrap()).unwrap().bytes, b"<svg/>");
        std::fs::write(&path, format!("<svg>{}", " ".repeat(65_536))).unwrap();
        assert!(read_logo(path.to_str().unwrap()).unwrap_err().contains("64 KiB"));
        assert!(read_logo("logo.svg").unwrap_err().contains("whole path"));
        assert!(read_logo("/nowhere/logo.svg").unwrap_err().contains("cannot be read"));
    }
}
