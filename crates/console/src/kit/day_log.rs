//! Log by day: a sentence for each entry under the head of its day, with the raw values folded.

use askama::Template;
use holdfast_domain::Timestamp;
use holdfast_wire::api::rfc3339;

use crate::kit::Cell;

/// Entries under the heads of their days (UTC), in their order.
#[derive(Debug, Clone, Template)]
#[template(path = "day_log.html")]
pub(crate) struct DayLog {
    title: String,
    days: Vec<(String, Vec<LogEntry>)>,
    /// Sentence of the empty state.
    empty: String,
    /// Address of the next page.
    next: Option<String>,
}

/// Entry of a log.
#[derive(Debug, Clone)]
pub(crate) struct LogEntry {
    pub(crate) at: Timestamp,
    /// Markup of a template, which has escaped its values.
    pub(crate) sentence: String,
    /// Line below the sentence.
    pub(crate) note: Option<String>,
    /// Raw values, folded.
    pub(crate) values: Vec<(&'static str, Cell)>,
}

impl LogEntry {
    /// Time of day: the head above has the date.
    fn time(&self) -> Cell {
        let exact = rfc3339(self.at);
        Cell::Moment(part(&exact, 11..19), exact)
    }
}

impl DayLog {
    pub(crate) fn new(title: &str, entries: Vec<LogEntry>, empty: String) -> Self {
        let mut days: Vec<(String, Vec<LogEntry>)> = Vec::new();
        for entry in entries {
            let day = part(&rfc3339(entry.at), 0..10);
            match days.last_mut() {
                Some((last, entries)) if *last == day => entries.push(entry),
                Some(_) | None => days.push((day, vec![entry])),
            }
        }
        Self { title: title.to_owned(), days, empty, next: None }
    }

    /// The same with a link to the next page, if there is one.
    pub(crate) fn next(self, next: Option<String>) -> Self {
        Self { next, ..self }
    }
}

/// A part of a moment of RFC 3339, whose parts stand at fixed places.
fn part(moment: &str, range: std::ops::Range<usize>) -> String {
    moment.get(range).unwrap_or(moment).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_stand_below_their_days_with_their_values_folded() {
        let entry = |micros, sentence: &str| LogEntry {
            at: Timestamp::from_micros(micros),
            sentence: sentence.to_owned(),
            note: Some("<b>".to_owned()),
            values: vec![("Action", Cell::code("x"))],
        };
        let day = 86_400_000_000;
        let entries = vec![entry(day + 5, "third"), entry(day, "second"), entry(day - 1, "first")];
        let html = DayLog::new("Log", entries, String::new()).next(Some("/x".to_owned()));
        let html = html.to_string();
        let (first, second) = html.split_once("<h3>1970-01-01</h3>").unwrap();
        assert!(first.contains("<h3>1970-01-02</h3>") && first.contains("third"), "{html}");
        assert!(first.contains("second") && second.contains(">23:59:59</time>"), "{html}");
        assert!(second.contains("<details><summary>") && second.contains("&#60;b&#62;"), "{html}");
        assert!(html.contains("href=\"/x\"") && !html.contains("class=\"empty\""), "{html}");
        let empty = DayLog::new("Log", Vec::new(), "No entry.".to_owned()).to_string();
        assert!(empty.contains("<p class=\"empty\">No entry.</p>"), "{empty}");
    }
}
