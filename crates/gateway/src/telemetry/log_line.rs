//! Log lines: text for people, or an object of JSON for machines. A value stays within its line and
//! its quotes whatever is in it. There are no spans: a line says by itself what it is about.
//!
//! ```text
//! text   2026-11-20T09:05:00.000250Z  WARN target: message name=value name="value"
//! JSON   {"timestamp":"…","level":"WARN","message":"…","name":value,"target":"…"}
//! ```
//!
//! Buffer, clock, filter and writer are those of `tracing-subscriber`. Its formats of fields are not:
//! its text lets a line break of a value begin a line that looks like another event, its JSON passes
//! on DEL and the control characters beyond ASCII, which command some terminals, and drops the
//! causes of an error.
//!
//! A line is made whole before it reaches the library's buffer: that one outlives an event, so the half
//! of a line whose value panicked would stand before the next one.

use std::error::Error;
use std::fmt::{self, Debug, Display, Write};

use holdfast_config::LogFormat;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Room for a line without growing: most are shorter.
const USUAL_BYTES: usize = 512;
const MESSAGE: &str = "message";

/// Codes by which a terminal sets a style or a colour of its own choice.
const DIM: u8 = 2;
const ITALIC: u8 = 3;

/// Formatter of the log's lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogLine {
    format: LogFormat,
    is_terminal: bool,
}

impl LogLine {
    /// For people on a terminal in its colours.
    pub(super) const fn new(format: LogFormat, is_terminal: bool) -> Self {
        Self { format, is_terminal }
    }

    /// Writes a part of a line, on a terminal in this style.
    fn paint(
        self,
        line: &mut Writer<'_>,
        style: u8,
        part: impl FnOnce(&mut Writer<'_>) -> fmt::Result,
    ) -> fmt::Result {
        if !self.is_terminal {
            return part(line);
        }
        write!(line, "\u{1b}[{style}m")?;
        part(line)?;
        line.write_str("\u{1b}[0m")
    }

    fn write_name(self, line: &mut Writer<'_>, name: &str) -> fmt::Result {
        if self.format == LogFormat::Json {
            line.write_str(",\"")?;
            line.write_str(name)?;
            return line.write_str("\":");
        }
        line.write_char(' ')?;
        if name == MESSAGE {
            return Ok(());
        }
        self.paint(line, ITALIC, |line| line.write_str(name))?;
        self.paint(line, DIM, |line| line.write_char('='))
    }

    fn write_line(self, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (*event.metadata().level(), event.metadata().target());
        match self.format {
            LogFormat::Pretty => {
                self.paint(&mut writer, DIM, |line| SystemTime.format_time(line))?;
                writer.write_char(' ')?;
                self.paint(&mut writer, colour(level), |line| write!(line, "{level:>5}"))?;
                writer.write_char(' ')?;
                self.paint(&mut writer, DIM, |line| write!(line, "{target}:"))?;
            }
            LogFormat::Json => {
                writer.write_str("{\"timestamp\":\"")?;
                SystemTime.format_time(&mut writer)?;
                write!(writer, "\",\"level\":\"{level}\"")?;
            }
        }
        let mut fields = LineFields { line: &self, writer: writer.by_ref(), written: Ok(()) };
        event.record(&mut fields);
        fields.written?;
        match self.format {
            LogFormat::Pretty => writer.write_char('\n'),
            LogFormat::Json => {
                // At the end, where the library's own format has it.
                writer.write_str(",\"target\":\"")?;
                Escaper { writer: &mut writer, is_quoted: true }.write_str(target)?;
                writer.write_str("\"}\n")
            }
        }
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
        let mut line = String::with_capacity(USUAL_BYTES);
        self.write_line(Writer::new(&mut line), event)?;
        writer.write_str(&line)
    }
}

const fn colour(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}

/// Quotation marks around a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    /// Numbers and truth values.
    Never,
    /// Values that display themselves: text shows them as they are.
    Json,
    /// Strings.
    Always,
}

/// Fields of an event, on their way into its line.
struct LineFields<'a> {
    line: &'a LogLine,
    writer: Writer<'a>,
    written: fmt::Result,
}

impl LineFields<'_> {
    /// A visitor cannot return: the first failure is kept, and nothing is written after it.
    fn put(
        &mut self,
        field: &Field,
        quotes: Quotes,
        value: impl FnOnce(&mut Escaper<'_, '_>) -> fmt::Result,
    ) {
        if self.written.is_ok() {
            self.written = self.write(field, quotes, value);
        }
    }

    fn write(
        &mut self,
        field: &Field,
        quotes: Quotes,
        value: impl FnOnce(&mut Escaper<'_, '_>) -> fmt::Result,
    ) -> fmt::Result {
        // A keyword of the language is marked where it is a name.
        let name = field.name().strip_prefix("r#").unwrap_or(field.name());
        let (line, writer) = (self.line, &mut self.writer);
        line.write_name(writer, name)?;
        let is_quoted = match quotes {
            Quotes::Never => false,
            Quotes::Json => line.format == LogFormat::Json,
            Quotes::Always => line.format == LogFormat::Json || name != MESSAGE,
        };
        if !is_quoted {
            return value(&mut Escaper { writer, is_quoted });
        }
        writer.write_char('"')?;
        value(&mut Escaper { writer, is_quoted })?;
        writer.write_char('"')
    }
}

impl Visit for LineFields<'_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no infinity, and nothing that is not a number.
        let is_null = !value.is_finite() && self.line.format == LogFormat::Json;
        self.put(field, Quotes::Never, |it| {
            if is_null { it.write_str("null") } else { write!(it, "{value:?}") }
        });
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Quotes::Never, |it| write!(it, "{value}"));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Quotes::Never, |it| write!(it, "{value}"));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Quotes::Never, |it| it.write_str(if value { "true" } else { "false" }));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Quotes::Always, |it| it.write_str(value));
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.put(field, Quotes::Json, |it| write!(it, "{}", ErrorChain(value)));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, Quotes::Json, |it| write!(it, "{value:?}"));
    }
}

/// An error with what is behind it.
struct ErrorChain<'a>(&'a (dyn Error + 'static));

impl Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut error = self.0;
        Display::fmt(error, f)?;
        while let Some(cause) = error.source() {
            write!(f, ": {cause}")?;
            error = cause;
        }
        Ok(())
    }
}

/// Passes text on with every control character escaped, so that none of them ends a line or commands
/// a terminal; between quotation marks also these and the backslash, as JSON has it.
struct Escaper<'a, 'w> {
    writer: &'a mut Writer<'w>,
    is_quoted: bool,
}

impl Write for Escaper<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most text has nothing to escape, which its bytes tell at a glance: the control characters
        // beyond ASCII begin with `0xc2`, as little else does. All bytes, many at once: to stop at
        // the first would be to look at one after the other.
        let may_be_special =
            |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\' || byte == 0x7f || byte == 0xc2;
        if !text.bytes().fold(false, |any, byte| any | may_be_special(byte)) {
            return self.writer.write_str(text);
        }
        for character in text.chars() {
            match character {
                '\n' => self.writer.write_str("\\n")?,
                '\r' => self.writer.write_str("\\r")?,
                '\t' => self.writer.write_str("\\t")?,
                '"' | '\\' if self.is_quoted => write!(self.writer, "\\{character}")?,
                _ if character.is_control() => {
                    write!(self.writer, "\\u{:04x}", u32::from(character))?;
                }
                _ => self.writer.write_char(character)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};
    use time::OffsetDateTime;

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
    fn a_value_that_panics_leaves_nothing_before_the_next_line() {
        struct PanickingValue;
        impl Display for PanickingValue {
            fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
                panic!("a value that cannot be shown")
            }
        }
        let line = logged(LogFormat::Json, false, || {
            let broken =
                std::panic::catch_unwind(|| tracing::info!(before = 1, value = %PanickingValue));
            assert!(broken.is_err());
            tracing::info!("whole");
        });
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["message"], "whole");
    }

    #[test]
    fn a_terminal_is_shown_levels_in_colours() {
        let line = logged(LogFormat::Pretty, true, || tracing::error!(route = "a", "b"));
        let (_moment, rest) = line.split_once('Z').unwrap();
        let told = "\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m \u{1b}[2mholdfast::telemetry::log_line::tests:\u{1b}[0m \
            b \u{1b}[3mroute\u{1b}[0m\u{1b}[2m=\u{1b}[0m\"a\"\n";
        assert_eq!(rest, told);
    }
}
