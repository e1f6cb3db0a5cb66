//! Formatter of log lines: text for people, or an object of JSON for machines; `telemetry` has the
//! writer. A value stays within its line and its quotes whatever is in it.
//! There are no spans: a line says by itself what it is about.

use std::cell::Cell;
use std::error::Error;
use std::fmt::{self, Debug, Write};

use time::OffsetDateTime;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use holdfast_config::LogFormat;

/// A line that took more is not kept for the next.
const KEPT_BYTES: usize = 16 * 1_024;

thread_local! {
    /// Buffer of the thread's last line, used again for the next one.
    static ROOM: Cell<String> = const { Cell::new(String::new()) };
}

/// Formatter of the log's lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLine {
    format: LogFormat,
    style: Style,
}

impl LogLine {
    /// For people on a terminal in its colours.
    pub(super) const fn new(format: LogFormat, is_terminal: bool) -> Self {
        Self { format, style: if is_terminal { COLOURED } else { PLAIN } }
    }
}

impl<S, N> FormatEvent<S, N> for LogLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _spans: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        // Taken out: what is told may log something itself.
        let mut line = ROOM.take();
        line.clear();
        let written = match self.format {
            LogFormat::Pretty => self.style.write(&mut line, event),
            LogFormat::Json => write_object(&mut line, event),
        };
        let written = written.and_then(|()| writer.write_str(&line));
        if line.capacity() <= KEPT_BYTES {
            ROOM.set(line);
        }
        written
    }
}

/// Escape sequences that colour a terminal, and the one that ends them; all empty elsewhere.
#[derive(Debug, Clone, Copy)]
struct Style {
    dim: &'static str,
    italic: &'static str,
    plain: &'static str,
    levels: [&'static str; 5],
}

const PLAIN: Style =
    Style { dim: "", italic: "", plain: "", levels: ["TRACE", "DEBUG", " INFO", " WARN", "ERROR"] };

const COLOURED: Style = Style {
    dim: "\u{1b}[2m",
    italic: "\u{1b}[3m",
    plain: "\u{1b}[0m",
    levels: [
        "\u{1b}[35mTRACE\u{1b}[0m",
        "\u{1b}[34mDEBUG\u{1b}[0m",
        "\u{1b}[32m INFO\u{1b}[0m",
        "\u{1b}[33m WARN\u{1b}[0m",
        "\u{1b}[31mERROR\u{1b}[0m",
    ],
};

impl Style {
    fn write(&self, line: &mut String, event: &Event<'_>) -> fmt::Result {
        let Self { dim, plain, .. } = self;
        let about: &Metadata<'_> = event.metadata();
        line.write_str(dim)?;
        write_now(line)?;
        line.write_str(plain)?;
        line.write_char(' ')?;
        line.write_str(self.level(*about.level()))?;
        line.write_char(' ')?;
        line.write_str(dim)?;
        line.write_str(about.target())?;
        line.write_char(':')?;
        line.write_str(plain)?;
        let mut fields = TextFields { style: self, line, written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        line.write_char('\n')
    }

    const fn level(&self, level: Level) -> &'static str {
        let [trace, debug, info, warn, error] = self.levels;
        match level {
            Level::TRACE => trace,
            Level::DEBUG => debug,
            Level::INFO => info,
            Level::WARN => warn,
            Level::ERROR => error,
        }
    }
}

/// `name=value` after `name=value`; the message alone has no name.
struct TextFields<'a> {
    style: &'a Style,
    line: &'a mut String,
    written: fmt::Result,
}

impl TextFields<'_> {
    fn put(&mut self, name: &str, value: impl FnOnce(&mut String) -> fmt::Result) {
        if self.written.is_ok() {
            self.written = self.begin(name).and_then(|()| value(self.line));
        }
    }

    fn begin(&mut self, name: &str) -> fmt::Result {
        let Style { dim, italic, plain, .. } = self.style;
        self.line.write_char(' ')?;
        if name == MESSAGE {
            return Ok(());
        }
        if plain.is_empty() {
            self.line.write_str(name)?;
            return self.line.write_char('=');
        }
        for part in [italic, name, plain, dim, "=", plain] {
            self.line.write_str(part)?;
        }
        Ok(())
    }
}

impl Visit for TextFields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(name(field), |line| write!(line, "{value:?}"));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(name(field), |line| {
            line.write_str(if value < 0 { "-" } else { "" })?;
            write_number(line, value.unsigned_abs(), 1)
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(name(field), |line| write_number(line, value, 1));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(name(field), |line| line.write_str(if value { "true" } else { "false" }));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == MESSAGE {
            return self.put(MESSAGE, |line| ControlEscaper(line).write_str(value));
        }
        self.put(name(field), |line| {
            line.write_char('"')?;
            JsonEscaper(line).write_str(value)?;
            line.write_char('"')
        });
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(name(field), |line| write!(ControlEscaper(line), "{}", ErrorChain(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(name(field), |line| write!(ControlEscaper(line), "{value:?}"));
    }
}

fn write_object(line: &mut String, event: &Event<'_>) -> fmt::Result {
    let about = event.metadata();
    line.write_str("{\"timestamp\":\"")?;
    write_now(line)?;
    line.write_str("\",\"level\":\"")?;
    line.write_str(about.level().as_str())?;
    line.write_char('"')?;
    let mut members = JsonFields { line, written: Ok(()) };
    event.record(&mut members);
    members.put("target", |line| write_string(line, format_args!("{}", about.target())));
    members.written?;
    line.write_str("}\n")
}

/// `,"name":value` after `,"name":value`.
struct JsonFields<'a> {
    line: &'a mut String,
    written: fmt::Result,
}

impl JsonFields<'_> {
    fn put(&mut self, name: &str, value: impl FnOnce(&mut String) -> fmt::Result) {
        if self.written.is_ok() {
            self.written = self.begin(name).and_then(|()| value(self.line));
        }
    }

    fn begin(&mut self, name: &str) -> fmt::Result {
        self.line.write_str(",\"")?;
        self.line.write_str(name)?;
        self.line.write_str("\":")
    }
}

impl Visit for JsonFields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(name(field), |line| {
            if value.is_finite() { write!(line, "{value:?}") } else { line.write_str("null") }
        });
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(name(field), |line| {
            line.write_str(if value < 0 { "-" } else { "" })?;
            write_number(line, value.unsigned_abs(), 1)
        });
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(name(field), |line| write_number(line, value, 1));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(name(field), |line| line.write_str(if value { "true" } else { "false" }));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(name(field), |line| write_string(line, format_args!("{value}")));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(name(field), |line| write_string(line, format_args!("{}", ErrorChain(value))));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(name(field), |line| write_string(line, format_args!("{value:?}")));
    }
}

const MESSAGE: &str = "message";

/// The name as it is meant: a keyword of the language is marked where it is a name.
fn name(field: &Field) -> &'static str {
    let name = field.name();
    name.strip_prefix("r#").unwrap_or(name)
}

fn write_string(line: &mut String, text: fmt::Arguments<'_>) -> fmt::Result {
    line.write_char('"')?;
    JsonEscaper(line).write_fmt(text)?;
    line.write_char('"')
}

/// An error with what is behind it.
struct ErrorChain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error = self.0;
        fmt::Display::fmt(error, f)?;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}

/// Passes text on with every control character escaped: none of them ends a line or commands a
/// terminal.
struct ControlEscaper<'a>(&'a mut String);

impl Write for ControlEscaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escaped(self.0, text, char::is_control)
    }
}

/// The same between quotation marks, as JSON has it.
struct JsonEscaper<'a>(&'a mut String);

impl Write for JsonEscaper<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escaped(self.0, text, |c| c.is_control() || c == '"' || c == '\\')
    }
}

/// Most text has nothing to escape, which its bytes tell at a glance: the control characters beyond
/// ASCII begin with `0xc2`, as little else does.
fn escaped(line: &mut String, text: &str, is_special: fn(char) -> bool) -> fmt::Result {
    let may_be_special =
        |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\' || byte == 0x7f || byte == 0xc2;
    // All of them, many at once: to stop at the first would be to look at one after the other.
    if !text.bytes().fold(false, |any, byte| any | may_be_special(byte)) {
        return line.write_str(text);
    }
    let mut rest = text;
    while let Some(at) = rest.find(is_special) {
        let (plain, special) = rest.split_at(at);
        line.write_str(plain)?;
        let mut characters = special.chars();
        match characters.next() {
            Some('\n') => line.write_str("\\n")?,
            Some('\r') => line.write_str("\\r")?,
            Some('\t') => line.write_str("\\t")?,
            Some(mark @ ('"' | '\\')) => write!(line, "\\{mark}")?,
            Some(control) => write!(line, "\\u{:04x}", u32::from(control))?,
            None => {}
        }
        rest = characters.as_str();
    }
    line.write_str(rest)
}

/// The moment in UTC: `2026-11-20T09:05:00.000250Z`.
fn write_now(line: &mut String) -> fmt::Result {
    let now = OffsetDateTime::now_utc();
    let (year, month, day) = now.to_calendar_date();
    let (hour, minute, second, micros) = now.to_hms_micro();
    let year = u32::try_from(year).unwrap_or(0);
    for (number, n_digits, after) in [
        (year, 4, '-'),
        (u32::from(u8::from(month)), 2, '-'),
        (u32::from(day), 2, 'T'),
        (u32::from(hour), 2, ':'),
        (u32::from(minute), 2, ':'),
        (u32::from(second), 2, '.'),
        (micros, 6, 'Z'),
    ] {
        write_number(line, number.into(), n_digits)?;
        line.write_char(after)?;
    }
    Ok(())
}

/// A number with at least so many digits, one of them or more.
fn write_number(line: &mut String, number: u64, n_digits: usize) -> fmt::Result {
    // As many as the largest number has.
    let mut digits = [b'0'; 20];
    let (mut left, mut n_written) = (number, 0);
    for digit in digits.iter_mut().rev() {
        *digit = b'0'.saturating_add(u8::try_from(left % 10).unwrap_or(0));
        left /= 10;
        n_written += 1;
        if left == 0 && n_written >= n_digits {
            break;
        }
    }
    let first = digits.len().saturating_sub(n_written);
    let text = digits.get(first..).and_then(|digits| str::from_utf8(digits).ok());
    line.write_str(text.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Default)]
    struct CapturedLog(Arc<Mutex<Vec<Vec<u8>>>>);

    impl io::Write for CapturedLog {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().push(bytes.to_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The one line that this logs, which has to be written at once.
    fn logged(format: LogFormat, is_terminal: bool, log: impl FnOnce()) -> String {
        let written = CapturedLog::default();
        let to = written.clone();
        let subscriber = tracing_subscriber::fmt()
            .event_format(LogLine::new(format, is_terminal))
            .with_max_level(Level::TRACE)
            .with_writer(move || to.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let mut writes = written.0.lock().unwrap().clone();
        assert_eq!(writes.len(), 1, "{writes:?}");
        String::from_utf8(writes.remove(0)).unwrap()
    }

    #[derive(Debug, thiserror::Error)]
    #[error("not written")]
    struct NotWritten(#[source] io::Error);

    fn log_all_kinds() {
        let error: &dyn Error = &NotWritten(io::Error::other("the \"disk\""));
        tracing::warn!(
            http.status = 200,
            behind = -1,
            late = true,
            ratio = 0.5,
            nothing = Option::<u64>::None,
            text = "a \"b\"\\\nc\u{9b}d é",
            shown = %"e\u{1b}[0m\nf",
            r#type = ?Some("g"),
            error,
            "hello\n{}",
            1
        );
    }

    #[test]
    fn text_is_one_line_whatever_is_in_it() {
        let line = logged(LogFormat::Pretty, false, log_all_kinds);
        let (moment, rest) = line.split_at(27);
        assert_eq!(
            moment.replace(|c: char| c.is_ascii_digit(), "0"),
            "0000-00-00T00:00:00.000000Z"
        );
        let told = concat!(
            "  WARN holdfast::telemetry::log_line::tests: hello\\n1 http.status=200 behind=-1 late=true ",
            r#"ratio=0.5 text="a \"b\"\\\nc\u009bd é" shown=e\u001b[0m\nf type=Some("g") "#,
            r#"error=not written: the "disk""#,
            "\n"
        );
        assert_eq!(rest, told);
    }

    #[test]
    fn json_is_one_object_whatever_is_in_it() {
        let line = logged(LogFormat::Json, true, log_all_kinds);
        assert_eq!(line.matches(char::is_control).collect::<String>(), "\n");
        let mut told: Value = serde_json::from_str(&line).unwrap();
        let moment = told.as_object_mut().unwrap().remove("timestamp").unwrap();
        let moment = OffsetDateTime::parse(
            moment.as_str().unwrap(),
            &time::format_description::well_known::Rfc3339,
        );
        assert!((OffsetDateTime::now_utc() - moment.unwrap()).abs() < time::Duration::HOUR);
        let expected = json!({
            "level": "WARN",
            "target": "holdfast::telemetry::log_line::tests",
            "message": "hello\n1",
            "http.status": 200,
            "behind": -1,
            "late": true,
            "ratio": 0.5,
            "text": "a \"b\"\\\nc\u{9b}d é",
            "shown": "e\u{1b}[0m\nf",
            "type": "Some(\"g\")",
            "error": "not written: the \"disk\"",
        });
        assert_eq!(told, expected);
    }

    #[test]
    fn a_terminal_is_shown_levels_in_colours() {
        let line = logged(LogFormat::Pretty, true, || tracing::error!(route = "a", "b"));
        let (_moment, rest) = line.split_once('Z').unwrap();
        let told = "\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m \u{1b}[2mholdfast::telemetry::log_line::tests:\u{1b}[0m \
            b \u{1b}[3mroute\u{1b}[0m\u{1b}[2m=\u{1b}[0m\"a\"\n";
        assert_eq!(rest, told);
    }

    #[test]
    fn numbers_keep_their_zeros() {
        let largest = (u64::MAX, 1, "18446744073709551615");
        let short =
            [(7, 2, "07"), (2026, 4, "2026"), (250, 6, "000250"), (0, 1, "0"), (10, 1, "10")];
        for (number, n_digits, text) in short.into_iter().chain([largest]) {
            let mut line = String::new();
            write_number(&mut line, number, n_digits).unwrap();
            assert_eq!(line, text);
        }
    }
}
