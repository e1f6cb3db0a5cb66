//! The official SDKs as they are installed: their own requests, their own retries.
//!
//! The libraries are where the task runner has put them; a run without it is told how to get them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use holdfast_tests::{
    Account, Config, Gate, Gateway, PATIENCE, Proxy, Ran, Reply, Request, Site, Upstream,
};
use serde_json::{Value, json};

use crate::bodies::acme;

const FUNDS: i64 = 10_000_000;
const CHARGE: i64 = 367;

/// What runs a script of one language.
#[derive(Clone, Copy)]
pub(crate) struct Sdk {
    folder: &'static str,
    extension: &'static str,
    command: fn(&Site) -> Command,
}

pub(crate) const PYTHON: Sdk =
    Sdk { folder: "python", extension: "py", command: |_site| python("HOLDFAST_TEST_PYTHON") };

pub(crate) const NODE: Sdk =
    Sdk { folder: "node", extension: "mjs", command: |site| node(site, "HOLDFAST_TEST_NODE_DIR") };

/// The same with the libraries of `tests/clients/frameworks`.
pub(crate) const PYTHON_FRAMEWORKS: Sdk = Sdk {
    folder: "frameworks",
    extension: "py",
    command: |_site| python("HOLDFAST_TEST_PYTHON_FRAMEWORKS"),
};

pub(crate) const NODE_FRAMEWORKS: Sdk = Sdk {
    folder: "frameworks",
    extension: "mjs",
    command: |site| node(site, "HOLDFAST_TEST_NODE_FRAMEWORKS_DIR"),
};

fn python(variable: &str) -> Command {
    let mut command = Command::new(given(variable));
    command.env("PYTHONPATH", helper("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A script finds its libraries beside itself.
fn node(site: &Site, variable: &str) -> Command {
    let modules = given(variable).join("node_modules");
    // Several tests may do it at the same moment: whoever comes second finds it done.
    drop(std::os::unix::fs::symlink(helper("node"), modules.join("holdfast-client")));
    let link = site.path("node_modules");
    if !link.exists() {
        std::os::unix::fs::symlink(modules, link).unwrap();
    }
    Command::new("node")
}

impl Sdk {
    /// The same with scripts of another folder.
    pub(crate) const fn with(self, folder: &'static str) -> Self {
        Self { folder, ..self }
    }

    /// What a script of its folder says.
    pub(crate) fn text(&self, name: &str) -> String {
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
        let file = clients.join(self.folder).join(format!("{name}.{}", self.extension));
        std::fs::read_to_string(file).unwrap()
    }

    /// Puts a script of its folder where the others import it from.
    pub(crate) fn put_beside(&self, site: &Site, name: &str) {
        site.write(&format!("{name}.{}", self.extension), &self.text(name));
    }

    /// A command of the language in a site's folder, with its libraries.
    pub(crate) fn tool(&self, site: &Site, arguments: &[&str]) -> Command {
        let mut command = (self.command)(site);
        command.args(arguments).current_dir(site.folder());
        command
    }

    /// A command that runs this script in a site's folder, and reaches nothing by a proxy.
    pub(crate) fn on(&self, site: &Site, script: &str) -> Command {
        let file = site.path(&format!("script.{}", self.extension));
        std::fs::write(&file, script).unwrap();
        let mut command = (self.command)(site);
        command.arg(file).current_dir(site.folder()).env("NO_PROXY", "127.0.0.1");
        command
    }
}

/// The folder of this repository's helper for a language.
pub(crate) fn helper(language: &str) -> PathBuf {
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients");
    clients.join(language).canonicalize().unwrap()
}

pub(crate) fn given(name: &str) -> PathBuf {
    let path = std::env::var_os(name).map(PathBuf::from);
    path.unwrap_or_else(|| panic!("{name} is not set: run `cargo xtask test tests`, which does"))
}

pub(crate) struct World {
    pub(crate) upstream: Upstream,
    pub(crate) site: Site,
    pub(crate) account: Account,
    pub(crate) gateway: Gateway,
}

pub(crate) fn world() -> World {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    World { upstream, site, account, gateway }
}

/// One whose test may take so long, with a model that does as it is told.
pub(crate) fn obeying_world(most: Duration) -> World {
    obeying_world_with(most, |config| config)
}

/// The same with another configuration.
pub(crate) fn obeying_world_with(most: Duration, vary: impl Fn(Config) -> Config) -> World {
    let upstream = Upstream::start(Reply::obeying("Good day"));
    let site = Site::empty_for(most).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    site.configure(&vary(Config::upstream(&upstream)));
    drop(site.cli(&["migrate", "up"]).ok());
    let account = site.account("main", "USD", "10.00");
    let gateway = site.serve();
    World { upstream, site, account, gateway }
}

impl World {
    /// Runs a script; what it prints is JSON.
    pub(crate) fn run(&self, sdk: &Sdk, name: &str) -> Value {
        self.run_edited(sdk, name, |script| script)
    }

    /// Runs a script that meets the gateway through a proxy, and asks so.
    pub(crate) fn run_through(&self, proxy: &Proxy, sdk: &Sdk, name: &str, asks: &str) -> Value {
        let mut command = self.command(sdk, name, |script| script);
        command.env("HOLDFAST_URL", format!("http://{}/v1", proxy.address()));
        Ran::of(command.env("HOLDFAST_ASKS", asks)).json()
    }

    /// Runs a script after a change to it.
    fn run_edited(&self, sdk: &Sdk, name: &str, edit: impl Fn(String) -> String) -> Value {
        Ran::of(&mut self.command(sdk, name, edit)).json()
    }

    pub(crate) fn command(
        &self,
        sdk: &Sdk,
        name: &str,
        edit: impl Fn(String) -> String,
    ) -> Command {
        let mut command = sdk.on(&self.site, &edit(sdk.text(name)));
        command.env("HOLDFAST_URL", self.gateway.base_url()).env("HOLDFAST_KEY", &self.account.key);
        command
    }

    #[track_caller]
    pub(crate) fn check_charges(&self, runs: i64) {
        assert_eq!(i64::try_from(self.upstream.runs()).unwrap(), runs);
        assert_eq!(self.site.balance(&self.account), (FUNDS - runs * CHARGE, 0));
        assert_eq!(self.site.verify()["operations"], runs);
    }

    fn check_calls(&self, sdk: &Sdk) {
        let said = self.run(sdk, "calls");
        assert_eq!(
            said,
            json!({"contents": ["Good day", "Good day"], "charges": [CHARGE, CHARGE]})
        );
        self.check_charges(2);
    }

    fn check_replay(&self, sdk: &Sdk) {
        let said = self.run(sdk, "replay");
        assert_eq!(said, json!({"same": true, "replayed": ["false", "true"]}));
        self.check_charges(1);
    }

    fn check_conflict(&self, sdk: &Sdk) {
        let said = self.run(sdk, "conflict");
        assert_eq!(said, json!({"status": 409, "code": "idempotency_key_conflict"}));
        self.check_charges(1);
        let log = self.site.logs();
        let posts = log.lines().filter(|line| line.contains("idempotency_key_conflict")).count();
        assert_eq!(posts, 1, "it is not tried again");
    }

    fn check_automatic(&self, sdk: &Sdk) {
        let said = self.run(sdk, "automatic");
        assert_eq!(said, json!({"contents": ["Good day", "Good day"], "distinct": true}));
        self.check_charges(2);
    }

    /// The line that the error shows for this client, put into a script as it stands.
    fn check_shown(&self, sdk: &Sdk, client: &str) {
        let bare = Request::completion(&self.account.key, "", acme("Say hello"));
        let told = self.gateway.send(&bare.without("Idempotency-Key")).json();
        let message = told["error"]["message"].as_str().unwrap().to_owned();
        let line = message.lines().find_map(|line| line.strip_prefix(client)).unwrap();
        let said = self.run_edited(sdk, "shown", |script| {
            assert!(script.contains("THE_LINE"));
            script.replace("THE_LINE", &line.replace("...", "**body"))
        });
        assert_eq!(said, json!({"content": "Good day"}));
        self.check_charges(1);
    }

    /// An SDK that was told the header's name alone makes keys that are refused, and says why.
    fn check_prefixed(&self, sdk: &Sdk) {
        let said = self.run(sdk, "prefixed");
        assert_eq!(
            (&said["status"], &said["code"]),
            (&json!(400), &json!("idempotency_key_malformed"))
        );
        assert!(said["message"].as_str().unwrap().contains("begins with `stainless-`"), "{said}");
        self.check_charges(0);
    }

    fn check_models(&self, sdk: &Sdk) {
        let said = self.run(sdk, "models");
        assert_eq!(said, json!({"ids": ["acme/large-1"], "one": "acme/large-1"}));
    }

    /// The SDK gives up on its first try and asks again with the same key, until the answer is there.
    fn check_recovery(&self, sdk: &Sdk) {
        let gate = Gate::new();
        self.upstream.next(Reply::saying("Good day").after(&gate));
        let said = std::thread::scope(|scope| {
            let script = scope.spawn(|| self.run(sdk, "recover"));
            crate::check::until("the first try was given up", || {
                self.site.logs().contains("hung_up").then_some(())
            });
            gate.open();
            script.join().unwrap()
        });
        assert_eq!(said, json!({"content": "Good day", "replayed": "true"}));
        self.check_charges(1);
    }
}

#[test]
fn python_calls_with_a_key_each_are_charged_each() {
    world().check_calls(&PYTHON);
}

#[test]
fn python_calls_with_the_same_key_replay() {
    world().check_replay(&PYTHON);
}

#[test]
fn python_raises_a_conflict_and_does_not_try_again() {
    world().check_conflict(&PYTHON);
}

#[test]
fn python_can_make_its_keys_by_itself() {
    world().check_automatic(&PYTHON);
}

#[test]
fn python_recovers_a_slow_call_by_its_own_retries() {
    world().check_recovery(&PYTHON);
}

#[test]
fn node_calls_with_a_key_each_are_charged_each() {
    world().check_calls(&NODE);
}

#[test]
fn node_calls_with_the_same_key_replay() {
    world().check_replay(&NODE);
}

#[test]
fn node_throws_a_conflict_and_does_not_try_again() {
    world().check_conflict(&NODE);
}

#[test]
fn node_can_make_its_keys_by_itself() {
    world().check_automatic(&NODE);
}

#[test]
fn node_recovers_a_slow_call_by_its_own_retries() {
    world().check_recovery(&NODE);
}

#[test]
fn node_makes_no_header_of_its_option_for_a_key() {
    let world = world();
    let said = world.run(&NODE, "bare");
    assert_eq!(said, json!({"status": 400, "code": "idempotency_key_required"}));
    world.check_charges(0);
}

#[test]
fn node_loops_over_tools_with_keys_by_themselves_and_not_with_one_header() {
    let world = obeying_world(PATIENCE);
    let said = world.run(&NODE, "run_tools");
    assert_eq!(said, json!({"said": "Good day", "code": "idempotency_key_conflict"}));
    world.check_charges(3);
}

#[test]
fn python_lists_the_models_and_looks_at_one() {
    world().check_models(&PYTHON);
}

#[test]
fn node_lists_the_models_and_looks_at_one() {
    world().check_models(&NODE);
}

#[test]
fn python_runs_the_line_that_the_error_shows() {
    world().check_shown(&PYTHON, "Python: ");
}

#[test]
fn node_runs_the_line_that_the_error_shows() {
    world().check_shown(&NODE, "Node: ");
}

#[test]
fn python_is_told_why_its_own_keys_are_refused() {
    world().check_prefixed(&PYTHON);
}

#[test]
fn node_is_told_why_its_own_keys_are_refused() {
    world().check_prefixed(&NODE);
}
