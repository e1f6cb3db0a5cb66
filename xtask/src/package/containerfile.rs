//! The image of `deploy/Containerfile`: built by buildah, and tried as the other image is.
//!
//! ```text
//! mmdebstrap ─▶ Debian's base ──────────────────────────┐
//!      └─▶ base with a stand-in for Cargo ─▶ stage 1 ─▶ stage 2 ─▶ image (OCI) ─▶ unpacked ─▶ started
//! ```
//!
//! No registry is queried: both images that the file begins with are build arguments, and here each is a root of
//! Debian. The compilation of the first stage does not run. In the place of its Cargo a script puts the binary of
//! this build into the folder of the requested profile, as the compilation would. All other steps run as they are
//! written, the installation of packages too.
//!
//! If buildah is missing, the file is read instead: its user, its ports, its sources.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{PackageParts, USER};
use crate::{
    shell::{has, printed},
    workspace::{Workspace, emptied},
};

const FILE: &str = "deploy/Containerfile";
const BASE: &str = "localhost/debian:bookworm";
const STAND_IN: &str = "localhost/rust:stand-in";
const IMAGE: &str = "localhost/holdfast:containerfile";
/// Ports that the configuration of compose listens on for callers and for the operator.
const PORTS: [&str; 2] = ["8080", "8081"];
/// Cargo of the first stage: `cargo build --profile NAME …` in the folder of the sources.
const CARGO: &str = "#!/bin/sh\nset -e\ntest \"$1 $2\" = 'build --profile'\ntest -f Cargo.lock\n\
                     exec install -D /usr/local/share/holdfast \"target/$3/holdfast\"\n";

/// Result of the check of the file.
#[derive(Debug)]
pub(super) enum Containerfile {
    /// Layout of OCI of the image that it makes.
    Built(PathBuf),
    /// Only read; the reason why no image was built.
    Read(&'static str),
}

/// Builds the image from a base of Debian, or reads the file if that cannot be.
pub(super) fn make(
    workspace: &Workspace,
    parts: &PackageParts,
    debian: &Path,
) -> Result<Containerfile> {
    let text = fs::read_to_string(workspace.root.join(FILE)).context(FILE)?;
    judge(&text, &workspace.root).with_context(|| format!("{FILE} is wrong"))?;
    if !has("buildah") {
        return Ok(Containerfile::Read(
            "there is no buildah: install Debian's package of that name",
        ));
    }
    let storage = emptied(&parts.folder.join("buildah"))?;
    let image = emptied(&parts.folder.join("containerfile"))?;
    let built = build(workspace, parts, debian, &Buildah { storage: &storage }, &image);
    // Its layers are whole copies of a root, and none of them is needed again.
    let removed = fs::remove_dir_all(&storage).context("the storage of buildah is still there");
    built.and(removed)?;
    Ok(Containerfile::Built(image))
}

fn build(
    workspace: &Workspace,
    parts: &PackageParts,
    debian: &Path,
    buildah: &Buildah<'_>,
    image: &Path,
) -> Result<()> {
    buildah.image("scratch", &[(debian, "/")], BASE)?;
    let cargo = parts.folder.join("cargo");
    fs::write(&cargo, CARGO).context("no stand-in for Cargo")?;
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).context("its mode")?;
    let stand_in = [
        (cargo.as_path(), "/usr/local/bin/cargo"),
        (parts.binary.as_path(), "/usr/local/share/holdfast"),
    ];
    buildah.image(BASE, &stand_in, STAND_IN)?;
    let mut bud = buildah.command("bud");
    bud.args(["--isolation", "chroot", "--pull-never", "--tag", IMAGE]);
    bud.arg("--build-arg").arg(format!("BUILD_IMAGE={STAND_IN}"));
    bud.arg("--build-arg").arg(format!("BASE_IMAGE={BASE}"));
    printed(bud.args(["--file", FILE, "."]).current_dir(&workspace.root))?;
    printed(buildah.command("push").arg(IMAGE).arg(format!("oci:{}:holdfast", image.display())))?;
    Ok(())
}

/// Buildah with a storage of its own: whole copies need no overlay and no fuse.
#[derive(Debug)]
struct Buildah<'a> {
    storage: &'a Path,
}

impl Buildah<'_> {
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new("buildah");
        command.args(["--storage-driver", "vfs", "--root"]).arg(self.storage.join("images"));
        command.arg("--runroot").arg(self.storage.join("run")).arg(name);
        command
    }

    /// An image that is another one with these files in it; an archive is unpacked.
    fn image(&self, from: &str, files: &[(&Path, &str)], name: &str) -> Result<()> {
        let container = printed(self.command("from").args(["--pull-never", from]))?;
        let container = container.trim();
        for (file, to) in files {
            printed(self.command("add").arg(container).arg(file).arg(to))?;
        }
        printed(self.command("commit").args(["--rm", container, name]))?;
        Ok(())
    }
}

/// Refuses what the other files of `deploy/` and the sources contradict.
fn judge(text: &str, sources: &Path) -> Result<()> {
    let user = format!("{USER}:{USER}");
    ensure!(
        arguments_of(text, "USER ").last() == Some(&user.as_str()),
        "the last USER is not {user}"
    );
    let exposed = arguments_of(text, "EXPOSE ").join(" ");
    ensure!(exposed.split(' ').eq(PORTS), "EXPOSE is not {}", PORTS.join(" "));
    for copied in arguments_of(text, "COPY ") {
        let words: Vec<&str> = copied.split(' ').collect();
        // What a stage hands on is made there, by the command that the next rule reads.
        let is_of_stage = words.iter().any(|word| word.starts_with("--from="));
        let from = words.iter().find(|word| !word.starts_with("--")).copied();
        let from = from.context("COPY without a source")?;
        ensure!(is_of_stage || sources.join(from).exists(), "COPY of {from}, which is not there");
        ensure!(
            !is_of_stage
                || (from == "/src/target/dist/holdfast" && text.contains("--profile dist")),
            "COPY of {from}, which no stage makes"
        );
    }
    Ok(())
}

/// The rest of each line that begins with this instruction.
fn arguments_of<'a>(text: &'a str, instruction: &str) -> Vec<&'a str> {
    text.lines().filter_map(|line| line.strip_prefix(instruction)).map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_fits_what_is_beside_it_and_each_rule_refuses_another() {
        let workspace = Workspace::load().unwrap();
        let text = fs::read_to_string(workspace.root.join(FILE)).unwrap();
        judge(&text, &workspace.root).unwrap();
        for (before, after, part) in [
            ("USER 10001:10001", "USER 0:0", "USER"),
            ("EXPOSE 8080 8081", "EXPOSE 8080", "EXPOSE"),
            ("COPY . .", "COPY nowhere .", "not there"),
            ("--profile dist", "--release", "no stage makes"),
            ("/src/target/dist/holdfast", "/src/target/holdfast", "no stage makes"),
        ] {
            assert!(text.contains(before), "{before}");
            let refused = judge(&text.replace(before, after), &workspace.root).unwrap_err();
            assert!(refused.to_string().contains(part), "{refused}");
        }
    }
}
