//! Pictures and documents that a request brings along, as `data:` URLs in base64, and the media
//! types that each kind takes of them. The table of refusals and the spelling read the same lists,
//! so that what is checked is what is sent: the registered name of a type, whichever name a caller wrote.

const BASE64: &str = ";base64";

/// A media type, and its name at kinds that have names of their own.
type Media = (&'static str, &'static str);

const PNG: Media = ("image/png", "png");
const JPEG: Media = ("image/jpeg", "jpeg");
const WEBP: Media = ("image/webp", "webp");
const PDF: Media = ("application/pdf", "pdf");
const TEXT: Media = ("text/plain", "txt");

/// Pictures that Anthropic and Bedrock take.
pub(crate) const PICTURES: [Media; 4] = [PNG, JPEG, ("image/gif", "gif"), WEBP];
/// Pictures that Gemini takes.
pub(crate) const GEMINI_PICTURES: [Media; 5] =
    [PNG, JPEG, WEBP, ("image/heic", "heic"), ("image/heif", "heif")];
/// Documents that Anthropic takes.
pub(crate) const ANTHROPIC_DOCUMENTS: [Media; 1] = [PDF];
/// Documents that Gemini takes.
pub(crate) const GEMINI_DOCUMENTS: [Media; 2] = [PDF, TEXT];
/// Documents that Bedrock takes.
pub(crate) const BEDROCK_DOCUMENTS: [Media; 4] =
    [PDF, TEXT, ("text/markdown", "md"), ("text/csv", "csv")];

/// Names that programs write for a type, and the registered one.
#[rustfmt::skip]
const ALIASES: [(&str, &str); 9] = [
    // Of a file's extension, by programs that do not look it up; never registered.
    ("image/jpg", "image/jpeg"),
    // Internet Explorer's for JPEG and PNG.
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    // Experimental names from before the registration (RFC 3778, RFC 7763, RFC 4180).
    ("application/x-pdf", "application/pdf"),
    ("text/x-markdown", "text/markdown"),
    ("text/md", "text/markdown"),
    ("text/x-csv", "text/csv"),
    ("application/csv", "text/csv"),
    ("text/comma-separated-values", "text/csv"),
];

/// Content of a `data:` URL.
pub(crate) struct Inline<'a> {
    pub(crate) media: &'static str,
    pub(crate) format: &'static str,
    pub(crate) base64: &'a str,
}

/// Content of a `data:` URL in base64, of one of the media types in `known`.
pub(crate) fn inline<'a>(url: &'a str, known: &[Media]) -> Option<Inline<'a>> {
    let (about, base64) = url
        .split_at_checked(5)
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("data:"))?
        .1
        .split_once(',')?;
    let (written, _base64) = about
        .split_at_checked(about.len().checked_sub(BASE64.len())?)
        .filter(|(_, end)| end.eq_ignore_ascii_case(BASE64))?;
    let written = written.split_once(';').map_or(written, |(media, _parameters)| media).trim();
    let alias = ALIASES.iter().find(|(alias, _)| alias.eq_ignore_ascii_case(written));
    let written = alias.map_or(written, |(_, registered)| registered);
    let (media, format) = known.iter().find(|(media, _)| media.eq_ignore_ascii_case(written))?;
    Some(Inline { media, format, base64 })
}

/// True if a URL is one of the web.
pub(crate) fn is_web(url: &str) -> bool {
    ["https:", "http:"].into_iter().any(|scheme| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}
