//! Running programs and speaking to the person who waits for them.

use std::{
    env,
    ffi::{OsStr, OsString},
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};

/// Output of a program, standard output and standard error, and its exit status.
#[derive(Debug)]
pub(crate) struct CommandOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl CommandOutput {
    /// The last line of the program's output, for a message of one line.
    pub(crate) fn last_words(&self) -> &str {
        let spoken = |text: &'_ str| !text.trim().is_empty();
        self.stderr
            .lines()
            .chain(self.stdout.lines())
            .rfind(|line| spoken(line))
            .map_or("it said nothing", str::trim)
    }
}

/// Runs a step that fetches packages, in silence. An error names the source by its kind, never by its address, and
/// the command to run by hand.
pub(crate) fn fetch(command: &mut Command, place: &str, by_hand: &str) -> Result<CommandOutput> {
    let captured = capture(command)?;
    ensure!(
        captured.status.success(),
        "{place} does not give it ({}): {by_hand}, then again",
        complaint(&captured.stderr).unwrap_or("without a reason")
    );
    Ok(captured)
}

/// The first line that calls itself an error, up to its address: the rest is advice.
fn complaint(stderr: &str) -> Option<&str> {
    let is_complaint =
        |line: &&str| ["ERROR", "npm error", "E: "].iter().any(|it| line.starts_with(it));
    let line = stderr.lines().find(is_complaint)?;
    let end = line.find("http").unwrap_or(line.len());
    line.get(..end).map(|line| line.trim_end_matches([' ', '(', '\'', '"']))
}

/// Prints a line for the reader.
pub(crate) fn print_line(line: &str) -> Result<()> {
    writeln!(io::stdout(), "{line}").context("standard output is closed")
}

/// Cargo itself, in `folder`, with the environment as it is.
pub(crate) fn cargo_as_configured(folder: &Path) -> Command {
    // The same Cargo that runs this: another toolchain would compile all crates again.
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.current_dir(folder);
    command
}

/// Cargo without the gateway's settings.
pub(crate) fn cargo(folder: &Path) -> Command {
    without_settings(cargo_as_configured(folder))
}

/// A command without the gateway's settings: a suite must not depend on what the person at the keyboard
/// has configured.
pub(crate) fn without_settings(mut command: Command) -> Command {
    for (name, _value) in env::vars_os() {
        if name.to_string_lossy().starts_with("HOLDFAST_") {
            command.env_remove(name);
        }
    }
    command
}

/// True if `cargo <subcommand>` is installed.
pub(crate) fn has_cargo(folder: &Path, subcommand: &str) -> bool {
    answers(cargo(folder).args([subcommand, "--version"]))
}

/// True if `program` can be started at all.
pub(crate) fn has(program: &str) -> bool {
    answers(Command::new(program).arg("--version"))
}

/// The program of this name on the `PATH`, the first one.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Runs to the end with the output shown as it comes; whether it succeeded.
pub(crate) fn run(command: &mut Command) -> Result<bool> {
    let status = command.stdin(Stdio::null()).status().with_context(|| cannot_start(command))?;
    Ok(status.success())
}

/// Runs to the end in silence.
pub(crate) fn capture(command: &mut Command) -> Result<CommandOutput> {
    let output = command.stdin(Stdio::null()).output().with_context(|| cannot_start(command))?;
    Ok(CommandOutput {
        status: output.status,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

/// Output of a program that has to succeed, which it runs to the end in silence.
pub(crate) fn printed(command: &mut Command) -> Result<String> {
    let captured = capture(command)?;
    ensure!(captured.status.success(), "{command:?}: {}", captured.last_words());
    Ok(captured.stdout)
}

/// Runs to the end with the output shown as it comes, and keeps a copy of it.
pub(crate) fn capture_shown(command: &mut Command) -> Result<CommandOutput> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| cannot_start(command))?;
    let stdout = child.stdout.take().context("the program has no standard output")?;
    let stderr = child.stderr.take().context("the program has no standard error")?;
    // Both at once: a program whose pipe is full and has no reader would hang for ever.
    let aside = thread::spawn(move || copy_lines(stderr, &mut io::stderr()));
    let stdout = copy_lines(stdout, &mut io::stdout());
    let stderr = aside.join().map_err(|_panic| anyhow::anyhow!("the copying thread panicked"))?;
    // After both copies: they end when the program has closed its ends.
    let status = child.wait().with_context(|| cannot_start(command))?;
    Ok(CommandOutput { status, stdout: stdout?, stderr: stderr? })
}

/// `1.5 s`, `2 min 3 s`.
pub(crate) fn spell(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{seconds}.{} s", duration.subsec_millis() / 100)
    } else {
        format!("{} min {} s", seconds / 60, seconds % 60)
    }
}

fn answers(command: &mut Command) -> bool {
    // A program that cannot be started is the case that this checks, so the error is the answer.
    capture(command).is_ok_and(|captured| captured.status.success())
}

fn copy_lines(from: impl Read, to: &mut impl Write) -> io::Result<String> {
    let mut from = BufReader::new(from);
    let mut copy = String::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        // Bytes and not text: a test may print bytes that are not UTF-8.
        if from.read_until(b'\n', &mut line)? == 0 {
            return Ok(copy);
        }
        to.write_all(&line)?;
        copy.push_str(&String::from_utf8_lossy(&line));
    }
}

fn cannot_start(command: &Command) -> String {
    let program: &OsStr = command.get_program();
    format!("cannot run {}", program.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_shown_and_kept() {
        let mut shown = Vec::new();
        let kept = copy_lines("one\ntwo".as_bytes(), &mut shown).unwrap();
        assert_eq!(kept, "one\ntwo");
        assert_eq!(shown, b"one\ntwo");
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_there() {
        assert!(!has("holdfast-no-such-program"));
        assert_eq!(find_program("holdfast-no-such-program"), None);
    }

    #[test]
    fn the_reason_is_the_first_error_without_an_address() {
        let stderr = "npm warn x\nnpm error code ECONNREFUSED\nnpm error A complete log";
        assert_eq!(complaint(stderr), Some("npm error code ECONNREFUSED"));
        assert_eq!(
            complaint("E: Failed to fetch http://host/x  404\n"),
            Some("E: Failed to fetch")
        );
        assert_eq!(complaint("WARNING: Retrying\n"), None);
    }

    #[test]
    fn what_is_not_given_is_told_with_its_place_and_what_to_do() {
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo 'ERROR: No matching distribution found' >&2; exit 1"]);
        let told = fetch(&mut failing, "the index", "name another").unwrap_err().to_string();
        let expected = "the index does not give it (ERROR: No matching distribution found): name another, then again";
        assert_eq!(told, expected);
        assert!(fetch(&mut Command::new("true"), "the index", "name another").is_ok());
    }

    #[test]
    fn durations_are_read_by_people() {
        assert_eq!(spell(Duration::from_millis(1_570)), "1.5 s");
        assert_eq!(spell(Duration::from_secs(123)), "2 min 3 s");
    }
}
