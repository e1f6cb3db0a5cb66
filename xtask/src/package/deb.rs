//! The Debian package, by `cargo deb` from its metadata in `crates/gateway/Cargo.toml`.

use std::{
    fs,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{PackageParts, STATE, USER, trial::Root};
use crate::{
    gateway::Profile,
    shell::{capture, cargo, has, print_line, printed},
    tools,
    workspace::{Workspace, emptied},
};

const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "holdfast"), ("zsh", "_holdfast"), ("fish", "holdfast.fish")];
/// Tags of lintian that are not mistakes here: the package is not made for Debian's own archive, and has neither a
/// bug that requests it nor a source package.
const ACCEPTED: &str = "initial-upload-closes-no-bugs,bogus-mail-host,no-md5sums-control-file,\
                        unstripped-binary-or-object";
/// Version of the package: that of the workspace, and `cargo deb`'s revision.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "-1");

/// Makes the package; its file.
pub(super) fn make(workspace: &Workspace, parts: &PackageParts) -> Result<PathBuf> {
    let pages = emptied(&parts.folder.join("man"))?;
    printed(Command::new(&parts.binary).arg("manual").arg(&pages))?;
    let completions = emptied(&parts.folder.join("completions"))?;
    for (shell, name) in COMPLETIONS {
        let script = printed(Command::new(&parts.binary).args(["completions", shell]))?;
        fs::write(completions.join(name), script).context("completions were not written")?;
    }
    emptied(&parts.folder.join("scripts"))?;
    let date = printed(
        Command::new("date").args(["--utc", "--rfc-email"]).arg(format!("--date=@{}", parts.epoch)),
    )?;
    let changelog = format!(
        "holdfast ({VERSION}) unstable; urgency=medium\n\n  * What changed for users is in CHANGELOG.md of the \
         source.\n\n -- The Holdfast project <holdfast@example.org>  {date}",
    );
    fs::write(parts.folder.join("changelog"), changelog).context("no changelog")?;
    // Debian has the text of the licence once, for everybody.
    let copyright = "Copyright 2026 The Holdfast project\n\nLicensed under the Apache License, Version 2.0: \
                     /usr/share/common-licenses/Apache-2.0\n";
    fs::write(parts.folder.join("copyright"), copyright).context("no copyright")?;
    let path = tools::find(workspace, "deb")?;
    let mut deb = cargo(&workspace.root);
    deb.args(["deb", "--no-build", "--package", "holdfast", "--output"]).arg(&parts.folder);
    deb.env("PATH", path).env("SOURCE_DATE_EPOCH", &parts.epoch);
    match parts.profile {
        // Quickly: a development build is not handed on.
        Profile::Dev => deb.args(["--fast", "--profile", "dev"]),
        Profile::Dist => deb.args(["--profile", "dist"]),
    };
    let printed = printed(&mut deb)?;
    let file = printed.lines().last().map(PathBuf::from).context("cargo deb says no file")?;
    Ok(workspace.root.join(file))
}

/// Archive of a small root of Debian, made once and kept.
pub(super) fn base(parts: &PackageParts) -> Result<PathBuf> {
    let archive = parts.folder.join("debian.tar");
    if !archive.exists() {
        needs("mmdebstrap")?;
        print_line("making a root of Debian, which takes minutes once")?;
        // Beside it first: half an archive must not be found.
        let half = parts.folder.join("half-debian.tar");
        printed(Command::new("mmdebstrap").args(["--variant=minbase", "bookworm"]).arg(&half))?;
        fs::rename(half, &archive).context("the root of Debian cannot be kept")?;
    }
    Ok(archive)
}

fn needs(program: &str) -> Result<()> {
    ensure!(has(program), "there is no {program}: install Debian's package of that name");
    Ok(())
}

/// Has lintian judge it, installs it into a root of Debian that is made once, and starts it there.
pub(super) fn try_out(workspace: &Workspace, parts: &PackageParts, deb: &Path) -> Result<()> {
    needs("lintian")?;
    let mut lintian = Command::new("lintian");
    lintian.args(["--allow-root", "--fail-on", "error,warning", "--suppress-tags", ACCEPTED]);
    let judged = capture(lintian.arg(deb))?;
    print_line(&judged.stdout)?;
    ensure!(judged.status.success(), "lintian finds mistakes in {}", deb.display());
    let root = parts.folder.join("debian");
    if !root.join("usr/bin/dpkg").exists() {
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--numeric-owner", "--same-permissions", "--file"]);
        printed(tar.arg(base(parts)?).arg("--directory").arg(emptied(&root)?))?;
    }
    let inside = "tmp/holdfast.deb";
    fs::copy(deb, root.join(inside)).context("the package is not in the root")?;
    let mut dpkg = Command::new("chroot");
    printed(dpkg.arg(&root).args(["dpkg", "--install"]).arg(Path::new("/").join(inside)))?;
    serve(workspace, &root)
}

/// Serves with the package's own example, with the credential that systemd would provide.
fn serve(workspace: &Workspace, root: &Path) -> Result<()> {
    let example = root.join("usr/share/doc/holdfast/examples/holdfast.toml");
    let shipped = fs::read_to_string(workspace.root.join("deploy/systemd/holdfast.toml"));
    let installed = fs::read_to_string(&example).context("there is no example in the package")?;
    ensure!(shipped.is_ok_and(|shipped| shipped == installed), "the example is another one");
    let unit = "lib/systemd/system/holdfast.service";
    let completions = ["bash-completion/completions/holdfast", "zsh/vendor-completions/_holdfast"];
    let completions = completions.map(|file| format!("share/{file}"));
    let files =
        [unit, "share/fish/vendor_completions.d/holdfast.fish", "share/man/man1/holdfast.1.gz"];
    for file in files.into_iter().chain(completions.iter().map(String::as_str)) {
        ensure!(root.join("usr").join(file).exists(), "the package has no {file}");
    }
    let listens = |line: &&str| line.starts_with("listen = ");
    ensure!(installed.lines().any(|line| listens(&line)), "the example does not listen");
    let freed = |line| if listens(&line) { "listen = \"127.0.0.1:0\"" } else { line };
    let config = installed.lines().map(freed).collect::<Vec<_>>().join("\n");
    let put = |file: &str, text: &str| -> Result<()> {
        let file = root.join(file);
        fs::create_dir_all(file.parent().context("a folder")?).context("no folder in the root")?;
        fs::write(&file, text).with_context(|| file.display().to_string())?;
        chown(&file, Some(USER), Some(USER)).with_context(|| file.display().to_string())
    };
    put("etc/holdfast/holdfast.toml", &config)?;
    let secret = "0123456789abcdef0123456789abcdef\n";
    for name in ["server", "admin"] {
        put(&format!("run/credentials/holdfast.service/secret_{name}"), secret)?;
    }
    chown(emptied(&root.join(STATE))?, Some(USER), Some(USER)).context("the state")?;
    let env = [("HOLDFAST_CONFIG", "/etc/holdfast/holdfast.toml".to_owned())];
    let user = format!("{USER}:{USER}");
    let started = Root { folder: root, program: "/usr/bin/holdfast", user: &user, env: &env };
    started.run(&["check-config"])?;
    started.run(&["migrate", "up"])?;
    started.run(&["wallet", "create", "acme", "--currency", "USD"])?;
    started.serve()?;
    started.run(&["ledger", "verify"])?;
    Ok(())
}
