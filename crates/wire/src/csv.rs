//! Comma-separated values as RFC 4180 has them: a name above each column, lines that end in CR LF, and quotes
//! if a field needs them. Not a reader.
//!
//! Reports for spreadsheets and programs, the same through every door: amounts in integer micros,
//! which no spreadsheet rounds, moments in RFC 3339, ids beside names. Texts that people chose cannot
//! begin a formula ([`chosen`]); numbers are never touched.

use holdfast_domain::text::is_seen;

/// Stands for what is not known, or is none.
pub(crate) const DASH: &str = "-";

/// A record: its fields with commas between, and CR LF at its end.
#[must_use]
pub fn record<'f>(fields: impl IntoIterator<Item = &'f str>) -> String {
    let fields: Vec<_> = fields.into_iter().map(field).collect();
    fields.join(",") + "\r\n"
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Characters that begin a formula, with their full-width and small forms: spreadsheets in East Asian
/// languages read those alike.
const FORMULA: [char; 12] = [
    '=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\u{fe66}', '\u{fe62}',
    '\u{fe63}', '\u{fe6b}',
];

/// A text that a person chose, in a form that a spreadsheet shows: one that begins like a formula gets an
/// apostrophe in front, which spreadsheets take for text. Blanks, quotation marks and invisible characters are
/// no beginning: some spreadsheets take them off. The id in the same row identifies the exact text.
#[must_use]
pub fn chosen(text: &str) -> String {
    let is_skipped = |it: char| it.is_whitespace() || it == '"' || !is_seen(it);
    let begins = text.trim_start_matches(is_skipped);
    if begins.starts_with(FORMULA) || text.starts_with(['\t', '\r', '\n']) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let fields = ["plain", "a,b", "say \"so\"", "two\r\nlines", "", " blank "];
        let expected = "plain,\"a,b\",\"say \"\"so\"\"\",\"two\r\nlines\",, blank \r\n";
        assert_eq!(record(fields), expected);
    }

    #[test]
    fn no_chosen_text_is_a_formula() {
        for text in [
            "=1+1",
            "+1",
            "-1",
            "@SUM(A1)",
            "\tx",
            "\rx",
            "\nx",
            "＝1+1",
            "＋1",
            "－1",
            "＠SUM(A1)",
            "﹦1",
            "﹢1",
            "﹣1",
            "﹫x",
            " =1",
            "\u{3000}＝1",
            "\u{a0}=1",
            "\"=1",
            "\u{200b}=1",
            "\u{feff}＠x",
        ] {
            assert_eq!(chosen(text), format!("'{text}"), "{text:?}");
        }
        for text in ["acme", "a=b", "a＝b", "'quoted", "", " a", "\"a", "株式会社", "–1"] {
            assert_eq!(chosen(text), text);
        }
    }
}
