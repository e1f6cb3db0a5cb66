//! Form of a log line: the library's, spelled once into a buffer that stays with its thread.
//!
//! ```text
//! event ─▶ plain values ─▶ buffer ─▶ line
//!            └─ a value to escape, a span, colours ─▶ the library's formatter ─▶ line
//! ```
//!
//! Why: each request has a line of some twenty values, and the library spells every one through several layers of
//! formatters, a character at a time. A value is plain if it is printable ASCII that no form escapes; nearly all are.
//! Whatever else an event has, the library writes that event as a whole, so a line never depends on who wrote it.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Debug, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_config::LogFormat;
use holdfast_domain::Timestamp;
use holdfast_wire::api::rfc3339;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::plain::{Quoting, is_plain};

/// Bytes of a moment in RFC 3339 before the fraction of its second.
const SECOND_LENGTH: usize = "2026-11-25T00:38:18".len();

thread_local! {
    static LINE: RefCell<Line> = const { RefCell::new(Line::new()) };
}

/// A formatter of the library, and the form that it writes.
#[derive(Debug)]
pub(super) struct LineFormat<F> {
    pub(super) library: F,
    pub(super) form: LogFormat,
}

impl<S, N, F> FormatEvent<S, N> for LineFormat<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let written = LINE.with(|line| {
            // Taken where a value logs while it is written: the inner event is the library's.
            let mut line = line.try_borrow_mut().ok()?;
            let may_be_plain = !writer.has_ansi_escapes() && context.lookup_current().is_none();
            (may_be_plain && line.write(event, self.form)).then(|| writer.write_str(&line.text))
        });
        written.unwrap_or_else(|| self.library.format_event(context, writer, event))
    }
}

/// The buffer of a thread, with the second that it wrote last and the names of the last event's fields.
#[derive(Debug)]
struct Line {
    text: String,
    second: u64,
    /// The second as text: a calendar is asked once in it.
    second_text: String,
    names: FieldNames,
}

/// Names of an event's fields as they stand before their values. Nearly all lines are of one event, that of requests.
#[derive(Debug)]
struct FieldNames {
    /// The event and the form that they are spelled for.
    of: Option<(Identifier, LogFormat)>,
    spelled: String,
    /// End of each name in `spelled`, in the order of the fields.
    ends: Vec<usize>,
    /// False if one is a word of Rust's own, whose name only the library spells.
    are_plain: bool,
}

impl FieldNames {
    const fn new() -> Self {
        Self { of: None, spelled: String::new(), ends: Vec::new(), are_plain: true }
    }

    fn set(&mut self, event: &'static Metadata<'static>, form: LogFormat) {
        let of = Some((event.callsite(), form));
        if self.of == of {
            return;
        }
        self.of = of;
        self.are_plain = true;
        self.spelled.clear();
        self.ends.clear();
        for name in event.fields().iter().map(|field| field.name()) {
            self.are_plain &= !name.starts_with("r#");
            // Identifiers and dots: no form escapes them.
            let [before, after] = match form {
                LogFormat::Json => [",\"", "\":"],
                LogFormat::Pretty => [" ", "="],
            };
            match form {
                LogFormat::Pretty if name == MESSAGE => self.spelled.push_str(before),
                LogFormat::Pretty | LogFormat::Json => {
                    self.spelled.extend([before, name, after]);
                }
            }
            self.ends.push(self.spelled.len());
        }
    }

    /// Name of a field; `None` for one that is not of the event.
    fn get(&self, field: &Field) -> Option<&str> {
        let end = *self.ends.get(field.index())?;
        let start = match field.index().checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.spelled.get(start..end)
    }
}

impl Line {
    const fn new() -> Self {
        Self {
            text: String::new(),
            second: u64::MAX,
            second_text: String::new(),
            names: FieldNames::new(),
        }
    }

    /// Writes an event with its line end; false where it is not plain.
    fn write(&mut self, event: &Event<'_>, form: LogFormat) -> bool {
        let Ok(now) = SystemTime::now().duration_since(UNIX_EPOCH) else { return false };
        if now.as_secs() != self.second {
            let micros = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
            self.second_text = rfc3339(Timestamp::from_micros(micros));
            self.second_text.truncate(SECOND_LENGTH);
            self.second = now.as_secs();
        }
        let Self { text, second_text, names, second: _ } = self;
        names.set(event.metadata(), form);
        text.clear();
        if form == LogFormat::Json {
            text.push_str("{\"timestamp\":\"");
        }
        text.push_str(second_text);
        text.push('.');
        push_number(text, u64::from(now.subsec_micros()), 6);
        let (level, target) = (event.metadata().level(), event.metadata().target());
        text.push_str(match form {
            LogFormat::Json => "Z\",\"level\":\"",
            LogFormat::Pretty if matches!(*level, Level::INFO | Level::WARN) => "Z  ",
            LogFormat::Pretty => "Z ",
        });
        text.push_str(level.as_str());
        text.push_str(match form {
            LogFormat::Json => "\"",
            LogFormat::Pretty => " ",
        });
        if form == LogFormat::Pretty {
            text.push_str(target);
            text.push(':');
        }
        let mut values = PlainValues { text, names, form, are_plain: names.are_plain };
        event.record(&mut values);
        let are_plain = values.are_plain;
        if form == LogFormat::Json {
            text.push_str(",\"target\":\"");
            text.push_str(target);
            text.push_str("\"}");
        }
        text.push('\n');
        are_plain
    }
}

/// Values of an event, each behind what the line has already.
struct PlainValues<'a> {
    text: &'a mut String,
    names: &'a FieldNames,
    form: LogFormat,
    are_plain: bool,
}

impl PlainValues<'_> {
    fn name(&mut self, field: &Field) {
        match self.names.get(field) {
            Some(name) => self.text.push_str(name),
            // The library spells the line.
            None => self.are_plain = false,
        }
    }

    fn quote(&mut self, quoting: Quoting) {
        if quoting == Quoting::Quoted {
            self.text.push('"');
        }
    }
}

/// The field that an event's own words are in.
const MESSAGE: &str = "message";

impl Visit for PlainValues<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let quoting = match self.form {
            LogFormat::Pretty if field.name() == MESSAGE => Quoting::Bare,
            LogFormat::Pretty | LogFormat::Json => Quoting::Quoted,
        };
        self.name(field);
        self.quote(quoting);
        self.are_plain &= is_plain(value.as_bytes(), quoting);
        self.text.push_str(value);
        self.quote(quoting);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        push_number(self.text, value, 1);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.name(field);
        if value < 0 {
            self.text.push('-');
        }
        push_number(self.text, value.unsigned_abs(), 1);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.name(field);
        self.text.push_str(if value { "true" } else { "false" });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let quoting = match self.form {
            LogFormat::Pretty => Quoting::Bare,
            LogFormat::Json => Quoting::Quoted,
        };
        self.name(field);
        self.quote(quoting);
        let start = self.text.len();
        let is_written = write!(self.text, "{value:?}").is_ok();
        let written = self.text.as_bytes().get(start..).unwrap_or_default();
        self.are_plain &= is_written && is_plain(written, quoting);
        self.quote(quoting);
    }

    fn record_error(&mut self, _field: &Field, _value: &(dyn Error + 'static)) {
        self.are_plain = false;
    }

    fn record_f64(&mut self, _field: &Field, _value: f64) {
        self.are_plain = false;
    }

    fn record_i128(&mut self, _field: &Field, _value: i128) {
        self.are_plain = false;
    }

    fn record_u128(&mut self, _field: &Field, _value: u128) {
        self.are_plain = false;
    }

    fn record_bytes(&mut self, _field: &Field, _value: &[u8]) {
        self.are_plain = false;
    }
}

/// Writes a number, with zeros before it up to so many digits.
fn push_number(to: &mut String, number: u64, digits_min: usize) {
    // `u64::MAX` has 20 digits.
    let mut spelled = [b'0'; 20];
    let (mut rest, mut n_digits) = (number, 0);
    for digit in spelled.iter_mut().rev() {
        *digit += u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
        n_digits += 1;
        if rest == 0 && n_digits >= digits_min {
            break;
        }
    }
    // Never the default: there are at most 20 digits, and each is ASCII.
    let digits = spelled.get(spelled.len() - n_digits..).unwrap_or_default();
    to.push_str(str::from_utf8(digits).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;
    use tracing_subscriber::fmt::format::{Format, Full, Json};

    use super::*;

    /// Lines that were written.
    #[derive(Debug, Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Lines {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    impl Lines {
        /// The only line, without its moment.
        fn line(&self) -> String {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            assert!(text.lines().count() <= 1, "{text}");
            let at = text.find(|character: char| character.is_ascii_digit()).unwrap_or(0);
            match text.get(at..at + "2026-11-25T00:38:18.225174Z".len()) {
                Some(moment) => text.replace(moment, "NOW"),
                None => text,
            }
        }
    }

    /// Writes nothing: only plain lines are left.
    #[derive(Debug)]
    struct Nothing;

    impl<S, N> FormatEvent<S, N> for Nothing
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
        N: for<'a> FormatFields<'a> + 'static,
    {
        fn format_event(
            &self,
            _context: &FmtContext<'_, S, N>,
            _writer: Writer<'_>,
            _event: &Event<'_>,
        ) -> fmt::Result {
            Ok(())
        }
    }

    fn told(by: impl Subscriber + Send + Sync, lines: &Lines, event: fn()) -> String {
        tracing::subscriber::with_default(by, event);
        lines.line()
    }

    /// The line of the library, ours beside it, and ours without the library.
    fn lines_of(form: LogFormat, event: fn()) -> [String; 3] {
        let json: fn() -> Format<Json> = || {
            Format::default()
                .json()
                .flatten_event(true)
                .with_span_list(false)
                .with_current_span(false)
        };
        let text: fn() -> Format<Full> = Format::default;
        let [library, both, plain] = [Lines::default(), Lines::default(), Lines::default()];
        let writing = |lines: &Lines| {
            tracing_subscriber::fmt()
                .with_ansi(false)
                .with_writer(lines.clone())
                .log_internal_errors(false)
        };
        let ours = writing(&plain).event_format(LineFormat { library: Nothing, form }).finish();
        match form {
            LogFormat::Json => [
                told(writing(&library).event_format(json()).finish(), &library, event),
                told(
                    writing(&both).event_format(LineFormat { library: json(), form }).finish(),
                    &both,
                    event,
                ),
                told(ours, &plain, event),
            ],
            LogFormat::Pretty => [
                told(writing(&library).event_format(text()).finish(), &library, event),
                told(
                    writing(&both).event_format(LineFormat { library: text(), form }).finish(),
                    &both,
                    event,
                ),
                told(ours, &plain, event),
            ],
        }
    }

    fn request() {
        let (absent, present): (Option<&str>, _) = (None, Some("sim/sim-1"));
        tracing::info!(
            request.id = %"78cf-57",
            hung_up = absent,
            http.status = 200_u16,
            api_key.name = "it's one",
            provider.route = present,
            replayed = false,
            charge_micros = -14_i64,
            most = u64::MAX,
            least = i64::MIN,
            nothing = 0_u8,
            list = ?[1, 2],
            "request"
        );
    }

    #[test]
    fn a_plain_event_is_spelled_as_the_library_spells_it() {
        for form in [LogFormat::Json, LogFormat::Pretty] {
            for event in [
                request,
                || tracing::warn!(rest = 7, "{} words", 2),
                || tracing::error!("words"),
                || tracing::info!(target: "another::target", alone = true),
            ] {
                let [library, both, plain] = lines_of(form, event);
                assert!(library.contains("NOW"), "{library}");
                assert_eq!([&both, &plain], [&library, &library]);
            }
        }
    }

    #[test]
    fn what_is_escaped_or_has_no_form_here_is_the_librarys() {
        let events: [fn(); 9] = [
            || tracing::info!(name = "a\nb", "request"),
            || tracing::info!(name = "a\"b", "request"),
            || tracing::info!(name = "a\\b", "request"),
            || tracing::info!(name = "caf\u{e9}", "request"),
            || tracing::info!(name = %"\u{1b}[2J", "request"),
            || tracing::info!("\u{9b}0m"),
            || tracing::info!(share = 0.5, "request"),
            || {
                let broken: &(dyn Error + 'static) = &io::Error::other("words");
                tracing::info!(broken, "request");
            },
            || tracing::info_span!("span", of = 1).in_scope(request),
        ];
        for form in [LogFormat::Json, LogFormat::Pretty] {
            for event in events {
                let [library, both, plain] = lines_of(form, event);
                assert!(library.contains("NOW"), "{library}");
                assert_eq!([both.as_str(), &plain], [&library, ""], "{library}");
            }
        }
    }

    #[test]
    fn an_event_within_a_value_is_a_line_of_its_own() {
        struct Sample;
        impl Debug for Sample {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                tracing::info!("within");
                f.write_str("told")
            }
        }
        let lines = Lines::default();
        let by = tracing_subscriber::fmt().with_ansi(false).with_writer(lines.clone());
        let by =
            by.event_format(LineFormat { library: Format::default(), form: LogFormat::Pretty });
        tracing::subscriber::with_default(
            by.finish(),
            || tracing::info!(value = ?Sample, "around"),
        );
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert!(text.lines().any(|line| line.ends_with("around value=told")), "{text}");
    }
}
