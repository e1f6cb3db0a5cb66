//! A start of the gateway inside of a root: chroot, and a process namespace of its own, which ends with it.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};

use crate::shell::{capture, without_settings};

const LISTENS: &str = "holdfast listens on http://";
/// Time that a command has, from its start to its end; it is killed then.
const TRIAL_TIMEOUT: Duration = Duration::from_secs(60);

/// A root with the gateway in it, and how it is started there.
#[derive(Debug)]
pub(super) struct Root<'a> {
    pub(super) folder: &'a Path,
    /// Path of the binary inside.
    pub(super) program: &'a str,
    /// User and group inside, by number.
    pub(super) user: &'a str,
    pub(super) env: &'a [(&'a str, String)],
}

impl Root<'_> {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = without_settings(Command::new("unshare"));
        // Inside, so that its end is that of the namespace. It hands a signal on, with --foreground once: two end
        // the gateway at once.
        command.args(["--pid", "--fork", "timeout", "--foreground", "--signal=KILL"]);
        command.arg(TRIAL_TIMEOUT.as_secs().to_string());
        command
            .arg("chroot")
            .arg(format!("--userspec={}", self.user))
            .arg(self.folder)
            .arg(self.program)
            .args(args);
        command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command of the gateway to its end; what it printed.
    pub(super) fn run(&self, args: &[&str]) -> Result<String> {
        let captured = capture(&mut self.command(args))?;
        ensure!(captured.status.success(), "holdfast {}: {}", args.join(" "), captured.stderr);
        Ok(captured.stdout)
    }

    /// Serves, is probed for readiness, and ends with its namespace.
    pub(super) fn serve(&self) -> Result<()> {
        let mut command = self.command(&["serve"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("unshare was not started")?;
        let answered = read_readiness(&mut child);
        // The first process of a namespace, which hands the signal on and takes the others with it. Killing
        // `unshare` would not end it.
        let first = format!("/proc/{0}/task/{0}/children", child.id());
        let first = fs::read_to_string(first).context("the process inside is not known")?;
        for process in first.split_whitespace() {
            capture(Command::new("kill").args(["-TERM", process]))?;
        }
        let status = child.wait().context("it was started here")?;
        let answer = answered?;
        ensure!(status.success(), "it did not end in order: {status}");
        ensure!(answer.starts_with("HTTP/1.1 200 "), "GET /readyz: {answer}");
        Ok(())
    }
}

/// The answer to `GET /readyz`, once its address is printed.
fn read_readiness(child: &mut Child) -> Result<String> {
    let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
    let found =
        lines.map_while(Result::ok).find_map(|line| line.strip_prefix(LISTENS).map(str::to_owned));
    let address = found.context("it ended before it listened: see what it said above")?;
    let mut connection = TcpStream::connect(&address).with_context(|| address.clone())?;
    connection.set_read_timeout(Some(TRIAL_TIMEOUT)).context("a time-out")?;
    let request = "GET /readyz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n";
    connection.write_all(request.as_bytes()).context("the request was not sent")?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).context("no answer")?;
    Ok(answer)
}
