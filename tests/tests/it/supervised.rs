//! Under a supervisor: what systemd is told, and what it finds in the unit that is shipped. No systemd starts
//! the gateway here.

use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use holdfast_tests::deployment::setting;
use holdfast_tests::{Config, PATIENCE, Ran, Site};

use crate::compose::grace_period;

const UNIT: &str = include_str!("../../../deploy/systemd/holdfast.service");
const CONFIG: &str = include_str!("../../../deploy/systemd/holdfast.toml");
/// Exposure that the unit may have at most, of 100: what is left is that it has a network and the system's files.
const EXPOSURE_MAX: &str = "15";

fn heard(socket: &UnixDatagram) -> String {
    let mut notice = [0; 256];
    let length = socket.recv(&mut notice).unwrap();
    String::from_utf8_lossy(&notice[..length]).into_owned()
}

#[test]
fn a_supervisor_hears_that_it_serves_and_that_it_ends() {
    let (site, _account) = Site::funded(&Config::simulated());
    let path = site.path("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    let site = site.with_env("NOTIFY_SOCKET", &path);
    // Neither a command nor a start that fails is ready.
    drop(site.cli(&["wallet", "list"]).ok());
    drop(site.cli(&["serve", "--config", "no-such-file.toml"]).failed(2));
    socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    assert!(socket.recv(&mut [0; 1]).is_err(), "nobody is ready yet");
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let gateway = site.serve();
    assert_eq!(heard(&socket).trim_end(), "READY=1");
    gateway.terminate();
    assert_eq!(heard(&socket).trim_end(), "STOPPING=1");
    assert!(gateway.wait().success());
    // Whoever is named and does not listen holds nobody up.
    drop(socket);
    site.serve().stop();
}

/// systemd's tool, with its own libraries where it was unpacked and not installed.
fn systemd_analyze() -> Command {
    let program = std::env::var_os("HOLDFAST_TEST_SYSTEMD_ANALYZE").map(PathBuf::from);
    let program = program.unwrap_or_else(|| {
        panic!("HOLDFAST_TEST_SYSTEMD_ANALYZE: `cargo xtask test tests` sets it")
    });
    let libraries = program.ancestors().nth(2).unwrap().join("lib");
    let folders = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    let own = folders.map(|folder| folder.path().join("systemd")).find(|it| it.is_dir());
    let mut command = Command::new(program);
    if let Some(own) = own {
        command.env("LD_LIBRARY_PATH", own);
    }
    command
}

/// The unit with the binary of these tests, which is where the unit looks only once it is installed.
fn unit_in(site: &Site) -> PathBuf {
    let binary = Path::new(site.command().get_program()).display().to_string();
    let installed = "ExecStart=/usr/bin/holdfast serve\n";
    assert!(UNIT.contains(installed));
    site.write(
        "holdfast.service",
        &UNIT.replace(installed, &format!("ExecStart={binary} serve\n")),
    );
    site.path("holdfast.service")
}

#[test]
fn systemd_understands_the_unit_and_finds_it_confined() {
    let site = Site::empty();
    let unit = unit_in(&site);
    let verified = Ran::of(systemd_analyze().args(["verify", "--man=no"]).arg(&unit));
    assert_eq!((verified.code, &*verified.stderr), (Some(0), ""), "{verified:?}");
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let judge = ["security", "--no-pager", "--offline=true", &threshold];
    let judged = Ran::of(systemd_analyze().args(judge).arg(&unit)).ok();
    assert!(judged.contains("Overall exposure level for holdfast.service: "), "{judged}");
    // The threshold counts: a unit that is open to everything is above it.
    site.write("open.service", "[Service]\nExecStart=/bin/true\n");
    let open = Ran::of(systemd_analyze().args(judge).arg(site.path("open.service")));
    assert_eq!(open.code, Some(1), "{open:?}");
}

#[test]
fn the_unit_gives_the_time_to_end_and_the_secrets_that_its_configuration_names() {
    assert_eq!(setting(UNIT, "TimeoutStopSec="), grace_period(CONFIG).to_string());
    assert_eq!(setting(UNIT, "Type="), "notify");
    assert_eq!(setting(UNIT, "DynamicUser="), "yes");
    let database = setting(CONFIG, "url = ").strip_prefix("sqlite://").unwrap();
    let folder = format!("/var/lib/{}", setting(UNIT, "StateDirectory="));
    assert_eq!(Path::new(database).parent(), Some(Path::new(&folder)));
    let (id, _folder) = setting(UNIT, "LoadCredential=").split_once(':').unwrap();
    for name in ["server", "admin"] {
        let named = format!("${{file:/run/credentials/holdfast.service/{id}_{name}}}");
        assert!(CONFIG.contains(&named), "{named}");
    }
}

#[test]
fn the_configuration_of_the_unit_serves() {
    let site = Site::empty();
    let credentials = site.path("credentials");
    std::fs::create_dir(&credentials).unwrap();
    for name in ["server", "admin"] {
        let secret = "0123456789abcdef0123456789abcdef\n";
        site.write(&format!("credentials/secret_{name}"), secret);
    }
    let config = CONFIG
        .replace("/run/credentials/holdfast.service", &credentials.display().to_string())
        .replace("/var/lib/holdfast", &site.path("state").display().to_string())
        .replace(":8080\"", ":0\"")
        .replace(":8081\"", ":0\"");
    site.write("holdfast.toml", &config);
    let site = site.with_env("HOLDFAST_CONFIG", "holdfast.toml");
    drop(site.cli(&["check-config"]).ok());
    drop(site.cli(&["migrate", "up"]).ok());
    let _account = site.account("main", "USD", "1.00");
    site.serve().stop();
}
