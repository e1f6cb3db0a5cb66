//! Programs out of Debian's packages that a check or a test needs: found on the `PATH`, else unpacked under the
//! target folder. A package is not installed, so that it needs no root, starts no service and does not change the
//! machine.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    shell::{capture, fetch, find_program, print_line},
    workspace::Workspace,
};

/// Program of a package, and the packages of the libraries that it needs and that may be missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DebianProgram {
    packages: &'static [&'static str],
    folder: &'static str,
    pub(crate) name: &'static str,
}

/// Prometheus' tool.
pub(crate) const PROMTOOL: DebianProgram =
    DebianProgram { packages: &["prometheus"], folder: "usr/bin", name: "promtool" };

/// The model checker.
pub(crate) const SPIN: DebianProgram =
    DebianProgram { packages: &["spin"], folder: "usr/bin", name: "spin" };

/// The balancer of `deploy/`.
pub(crate) const HAPROXY: DebianProgram = DebianProgram {
    packages: &["haproxy", "liblua5.3-0", "libopentracing-c-wrapper0", "libopentracing1"],
    folder: "usr/sbin",
    name: "haproxy",
};

/// The store of Patroni's cluster state.
pub(crate) const ETCD: DebianProgram =
    DebianProgram { packages: &["etcd-server"], folder: "usr/bin", name: "etcd" };

/// systemd's tool that reads units, with the library of its own.
pub(crate) const SYSTEMD_ANALYZE: DebianProgram = DebianProgram {
    packages: &["systemd", "libsystemd-shared"],
    folder: "usr/bin",
    name: "systemd-analyze",
};

/// Finds a program.
pub(crate) fn find(workspace: &Workspace, wanted: DebianProgram) -> Result<PathBuf> {
    let DebianProgram { packages, folder, name } = wanted;
    if let Some(found) = find_program(name) {
        return Ok(found);
    }
    let tools = workspace.target.join("tools");
    let root = tools.join(name);
    let unpacked = root.join(folder).join(name);
    if unpacked.is_file() {
        return Ok(unpacked);
    }
    print_line(&format!(
        "{name} is not installed: unpacking Debian's packages {}",
        packages.join(", ")
    ))?;
    // Beside it first: half an unpacked package must not be found.
    let half = tools.join(format!("{name}-{}", std::process::id()));
    let done = unpack(&half, packages).with_context(|| format!("there is no {name}"));
    if done.is_ok() && !root.exists() {
        fs::rename(&half, &root).with_context(|| format!("{name} cannot be kept"))?;
    } else {
        fs::remove_dir_all(&half).ok();
    }
    done?;
    ensure!(unpacked.is_file(), "Debian's packages {} have no {name}", packages.join(", "));
    Ok(unpacked)
}

fn unpack(folder: &Path, packages: &[&str]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
    if !capture(&mut download(folder, packages))?.status.success() {
        // A new machine has no list of packages yet.
        capture(Command::new("apt-get").args(["update", "--quiet"]))?;
        let by_hand = format!("install the package {} by hand", packages.first().unwrap_or(&""));
        fetch(&mut download(folder, packages), "Debian's archive", &by_hand)?;
    }
    let files = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for file in files {
        let file = file.with_context(|| folder.display().to_string())?.path();
        // Unpacked files lie in the same folder as the packages.
        if file.extension().is_none_or(|it| it != "deb") {
            continue;
        }
        let captured = capture(Command::new("dpkg").arg("-x").args([&file, folder]))?;
        ensure!(captured.status.success(), "dpkg -x {}: {}", file.display(), captured.last_words());
    }
    Ok(())
}

/// Command that fetches packages into a folder, without the rights of root.
fn download(folder: &Path, packages: &[&str]) -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(["download", "--quiet"]).args(packages).current_dir(folder);
    apt
}
