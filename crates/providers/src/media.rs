//! Pictures and documents that a request brings along, as `data:` URLs in base64, and the media
//! types that each kind takes of them. The table of refusals and the spelling read the same lists,
//! so that what is checked is what is sent.

/// A media type, and its name where a kind has names of its own.
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
    let written = about.strip_suffix(";base64")?;
    let written = written.split_once(';').map_or(written, |(media, _parameters)| media);
    let (media, format) = known.iter().find(|(media, _)| media.eq_ignore_ascii_case(written))?;
    Some(Inline { media, format, base64 })
}

/// Says if a URL is one of the web.
pub(crate) fn is_web(url: &str) -> bool {
    ["https:", "http:"].into_iter().any(|scheme| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}
