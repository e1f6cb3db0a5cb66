//! A folder with a configuration and data, as an operator has one, and what is done in it.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::config::UPSTREAM_KEY;
use crate::gateway::SIDECAR_LISTENS;
use crate::watchdog::Watchdog;
use crate::{Account, Config, Gateway, Ran};

const CONFIG: &str = "holdfast.toml";

/// An operator's folder. It is deleted when neither it nor a gateway in it is needed any more.
#[derive(Debug)]
pub struct Site {
    folder: Arc<TempDir>,
    env: Vec<(OsString, OsString)>,
    /// Binary of all processes in here; `None`: the one that users have.
    program: Option<PathBuf>,
    _watchdog: Option<Watchdog>,
}

impl Site {
    /// An empty folder.
    #[must_use]
    pub fn empty() -> Self {
        let folder = TempDir::with_prefix("holdfast-test-").expect("a folder");
        Self::of(folder, Some(Watchdog::watch()))
    }

    /// An empty folder, for a test that may take longer than others.
    #[must_use]
    pub fn empty_for(most: Duration) -> Self {
        let folder = TempDir::with_prefix("holdfast-test-").expect("a folder");
        Self::of(folder, Some(Watchdog::watch_for(most)))
    }

    /// A folder in another one, with this configuration, for work that takes as long as it takes.
    #[must_use]
    pub fn unwatched_in(parent: &Path, config: &Config) -> Self {
        let folder = TempDir::with_prefix_in("holdfast-", parent).expect("a folder");
        Self::of(folder, None).with_config(config)
    }

    fn of(folder: TempDir, watchdog: Option<Watchdog>) -> Self {
        let site =
            Self { folder: Arc::new(folder), env: Vec::new(), program: None, _watchdog: watchdog };
        site.with_env("UPSTREAM_KEY", UPSTREAM_KEY)
    }

    /// A folder with this configuration and no database yet.
    #[must_use]
    pub fn configured(config: &Config) -> Self {
        Self::empty().with_config(config)
    }

    /// A folder with this configuration, an empty database, and an account with 10.00 USD.
    #[must_use]
    pub fn funded(config: &Config) -> (Self, Account) {
        Self::configured(config).with_account()
    }

    /// The same, for a test that may take longer than others.
    #[must_use]
    pub fn funded_for(most: Duration, config: &Config) -> (Self, Account) {
        Self::empty_for(most).with_config(config).with_account()
    }

    /// The same folder with a configuration.
    pub(crate) fn with_config(self, config: &Config) -> Self {
        self.configure(config);
        self.with_env("HOLDFAST_CONFIG", CONFIG)
    }

    fn with_account(self) -> (Self, Account) {
        drop(self.cli(&["migrate", "up"]).ok());
        let account = self.account("main", "USD", "10.00");
        (self, account)
    }

    /// Sets a variable of the environment for everything that is started later.
    #[must_use]
    pub fn with_env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.set_env(name, value);
        self
    }

    /// The same of a folder that stays in its place.
    pub fn set_env(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.into(), value.into()));
    }

    /// Switches off this guard of the contract in all processes of the site.
    #[must_use]
    pub fn with_fault(self, fault: &str) -> Self {
        self.with_env("HOLDFAST_FAULT", fault)
    }

    /// Writes another configuration.
    pub fn configure(&self, config: &Config) {
        self.write(CONFIG, &config.render());
    }

    /// Writes a file for its owner only: configurations for tests have secrets in them. A reader meanwhile finds
    /// the one before, whole.
    pub fn write(&self, name: &str, text: &str) {
        let half = self.path(&format!("{name}.half"));
        let mut file = OpenOptions::new();
        file.write(true).create(true).truncate(true).mode(0o600);
        let mut file = file.open(&half).expect("a file");
        file.write_all(text.as_bytes()).expect("a file");
        std::fs::rename(half, self.path(name)).expect("a file");
    }

    /// The path of a file in here.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The database file.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.path("holdfast-data/holdfast.db")
    }

    /// Creates a wallet, deposits an amount unless it is zero, and issues an API key.
    #[must_use]
    pub fn account(&self, name: &str, currency: &str, amount: &str) -> Account {
        let wallet = self.json(&["wallet", "create", name, "--currency", currency]);
        let wallet = text(&wallet, "id");
        if amount != "0" {
            drop(self.json(&["wallet", "deposit", &wallet, amount]));
        }
        self.another_key(&wallet, &format!("{name}-key"))
    }

    /// Issues an API key for a wallet.
    #[must_use]
    pub fn another_key(&self, wallet: &str, name: &str) -> Account {
        self.key_with(wallet, &["--name", name])
    }

    /// Issues an API key for a wallet with these options.
    #[must_use]
    pub fn key_with(&self, wallet: &str, options: &[&str]) -> Account {
        let key = self.json(&[&["key", "issue", "--wallet", wallet], options].concat());
        Account { wallet: wallet.to_owned(), id: text(&key, "id"), key: text(&key, "key") }
    }

    /// Rotates an account's API key: the same account under its new credential.
    #[must_use]
    pub fn rotate(&self, account: &Account, grace: &str) -> Account {
        let key = self.json(&["key", "rotate", &account.id, "--grace", grace]);
        assert_eq!(text(&key, "id"), account.id, "it is the same API key");
        Account { key: text(&key, "key"), ..account.clone() }
    }

    /// Available and held micros of a wallet, as the command line shows them.
    #[track_caller]
    #[must_use]
    pub fn balance(&self, account: &Account) -> (i64, i64) {
        let wallet = self.json(&["wallet", "show", &account.wallet]);
        let micros = |name: &str| wallet[name].as_i64().expect("an amount");
        (micros("available_micros"), micros("held_micros"))
    }

    /// Verifies the whole ledger and returns the report.
    #[track_caller]
    pub fn verify(&self) -> Value {
        let verified = self.json(&["ledger", "verify"]);
        assert_eq!(verified["ok"], true, "{verified}");
        assert_eq!(verified["mismatches"], Value::Array(Vec::new()));
        verified
    }

    /// The same by the release before this version.
    #[must_use]
    pub fn account_by_previous(&self, name: &str, currency: &str, amount: &str) -> Account {
        let json = |words: &[&str]| self.previous_cli(&[words, &["--json"]].concat()).json();
        let wallet = text(&json(&["wallet", "create", name, "--currency", currency]), "id");
        drop(json(&["wallet", "deposit", &wallet, amount]));
        let key = json(&["key", "issue", "--wallet", &wallet]);
        Account { wallet, id: text(&key, "id"), key: text(&key, "key") }
    }

    /// Runs a command of the release before this version.
    #[must_use]
    pub fn previous_cli(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command_of(&previous_binary()).args(arguments))
    }

    /// Starts `holdfast serve` of the release before this version, and waits until it listens.
    #[must_use]
    pub fn serve_previous(&self) -> Gateway {
        let mut command = self.command_of(&previous_binary());
        command.arg("serve");
        self.start(command)
    }

    /// Runs a command of the command line.
    #[must_use]
    pub fn cli(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command().args(arguments))
    }

    /// Runs a command with `--json` that has to go well.
    #[track_caller]
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        Ran::of(self.command().args(arguments).arg("--json")).json()
    }

    /// Starts `holdfast serve` and waits until it listens.
    #[must_use]
    pub fn serve(&self) -> Gateway {
        let mut command = self.command();
        command.arg("serve");
        self.start(command)
    }

    /// The same with these variables in its environment.
    #[must_use]
    pub fn serve_with(&self, env: &[(&'static str, PathBuf)]) -> Gateway {
        let mut command = self.command();
        command.arg("serve").envs(env.iter().map(|(name, value)| (name, value)));
        self.start(command)
    }

    /// Starts it on one core, and waits until it listens. `taskset` is part of every Linux.
    #[must_use]
    pub fn serve_on_one_core(&self) -> Gateway {
        let status = std::fs::read_to_string("/proc/self/status").expect("a process of Linux");
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        let first = cores.and_then(|cores| cores.trim().split([',', '-']).next()).expect("a core");
        let mut command = self.command_of(Path::new("taskset"));
        command.args(["-c", first]).arg(binary()).arg("serve");
        self.start(command)
    }

    /// Starts `holdfast sidecar` before this gateway, with the journal of this folder, and waits until it
    /// listens.
    #[must_use]
    pub fn sidecar(&self, gateway: SocketAddr, options: &[&str]) -> Gateway {
        self.sidecar_to(&format!("http://{gateway}/v1"), options, ("LANG", Path::new("C")))
    }

    /// The same before the gateway of this URL, with a variable of its environment.
    #[must_use]
    pub fn sidecar_to(
        &self,
        upstream: &str,
        options: &[&str],
        (name, value): (&str, &Path),
    ) -> Gateway {
        let mut command = self.sidecar_command(upstream);
        command.args(options).env(name, value);
        self.start_sidecar(command)
    }

    /// The command of a sidecar before the gateway of this URL.
    #[must_use]
    pub fn sidecar_command(&self, upstream: &str) -> Command {
        let mut command = self.command();
        command.args(["sidecar", "--listen", "127.0.0.1:0", "--upstream", upstream]);
        command
    }

    /// Starts the command of a sidecar, and waits until it listens.
    #[must_use]
    pub fn start_sidecar(&self, command: Command) -> Gateway {
        Gateway::start_as(command, Arc::clone(&self.folder), SIDECAR_LISTENS)
    }

    /// Starts a command that serves, and waits until it listens.
    #[must_use]
    pub fn start(&self, command: Command) -> Gateway {
        Gateway::start(command, Arc::clone(&self.folder))
    }

    /// Starts `holdfast serve`, which stops for ever at an arrival at a step, `<step>:<nth>`, and waits
    /// until it listens.
    #[must_use]
    pub fn serve_until(&self, failpoint: &str) -> Gateway {
        let mut command = self.command_until(failpoint);
        command.arg("serve");
        Gateway::start(command, Arc::clone(&self.folder))
    }

    /// The command line in this folder, which stops for ever at an arrival at a step.
    #[must_use]
    pub fn command_until(&self, failpoint: &str) -> Command {
        let mut command = self.command();
        command.env("HOLDFAST_FAILPOINT", failpoint);
        command
    }

    /// The binary in this folder, with this environment and no other of the tests' own.
    #[must_use]
    pub fn command(&self) -> Command {
        match &self.program {
            Some(program) => self.command_of(program),
            None => self.command_of(&binary()),
        }
    }

    fn command_of(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        command.current_dir(self.folder()).env_clear();
        for name in ["PATH", "HOME"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Everything that the processes in here have logged and printed so far.
    #[must_use]
    pub fn logs(&self) -> String {
        let files = std::fs::read_dir(self.folder()).expect("the folder");
        let logs = files.map(|file| file.expect("a file").path());
        let logs = logs.filter(|path| path.extension().is_some_and(|it| it == "log"));
        logs.map(|path| std::fs::read_to_string(path).expect("a log")).collect()
    }
}

/// A member that is a string.
#[track_caller]
#[must_use]
pub fn text(object: &Value, name: &str) -> String {
    object[name].as_str().unwrap_or_else(|| panic!("no {name} in {object}")).to_owned()
}

/// The binary of the release before, which tests named `postgres_previous_*` need. They are skipped without it,
/// and the reason is printed.
fn previous_binary() -> PathBuf {
    let named = std::env::var_os("HOLDFAST_TEST_PREVIOUS_BIN").map(PathBuf::from);
    named.expect("HOLDFAST_TEST_PREVIOUS_BIN is not set: `cargo xtask test tests` builds it")
}

/// The real binary: the one that is named, else the one that was built beside the tests.
pub(crate) fn binary() -> PathBuf {
    let named = std::env::var_os("HOLDFAST_BIN").map(PathBuf::from);
    named.unwrap_or_else(|| {
        let tests = std::env::current_exe().expect("a test is a program");
        let built = tests.parent().and_then(Path::parent).expect("the tests are in target");
        built.join("holdfast")
    })
}
