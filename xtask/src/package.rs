//! `cargo xtask package`: the packages for users, made from one build and then tried: a Debian package, and the
//! root of an image.
//!
//! ```text
//! build ─▶ manual pages, completions ─▶ .deb ─▶ lintian ─▶ installed into a root of Debian ─▶ started there
//!      ├─▶ root: binary, libraries, certificates ─▶ image (OCI) ─▶ unpacked ─▶ migrated and started there
//!      └─▶ deploy/Containerfile, by buildah ─▶ image (OCI) ─▶ unpacked ─▶ migrated and started there
//! ```
//!
//! The root of Debian is made once, and kept for the next time.
//!
//! Each is started in a chroot and a process namespace of its own, by its own user, on loopback: no daemon of
//! containers and no systemd takes part, and only `target/package` of the machine is changed. It needs root, for
//! the two roots.

mod containerfile;
mod deb;
mod image;
mod trial;

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use self::containerfile::Containerfile;
use crate::{
    gateway::{self, Profile},
    shell::{print_line, printed},
    workspace::Workspace,
};

/// User of the image, as `deploy/Containerfile` has it. The root of Debian has no user with this id.
const USER: u32 = 10_001;
/// Folder of the database, from the root on.
const STATE: &str = "var/lib/holdfast";

/// A build that is packaged.
#[derive(Debug)]
struct PackageParts {
    profile: Profile,
    binary: PathBuf,
    /// Folder of all that is made here.
    folder: PathBuf,
    /// Seconds since the epoch of the newest commit, which dates all packaged files.
    epoch: String,
}

/// Makes and tries the image and the package; false if the build failed.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let profile = Profile::chosen("package", args)?;
    let Some(binary) = gateway::build(workspace, profile)? else { return Ok(false) };
    let folder = workspace.target.join("package");
    fs::create_dir_all(&folder).context("no folder for the packages")?;
    let epoch = workspace.newest_commit("%ct")?;
    let parts = PackageParts { profile, binary, folder, epoch };
    let tried = "unpacked, migrated and served by its own user";
    let image = image::make(&parts)?;
    image::try_out(workspace, &parts, &image)?;
    print_line(&format!("{}: {tried}", image.display()))?;
    let debian = deb::base(&parts)?;
    let containerfile = containerfile::make(workspace, &parts, &debian)?;
    if let Containerfile::Built(built) = &containerfile {
        image::try_out(workspace, &parts, built)?;
        // The health check of compose uses it.
        let mut curl = Command::new("chroot");
        printed(curl.arg(parts.folder.join("unpacked")).args(["curl", "--version"]))?;
        print_line(&format!("{} of deploy/Containerfile: {tried}", built.display()))?;
    }
    let deb = deb::make(workspace, &parts)?;
    deb::try_out(workspace, &parts, &deb)?;
    print_line(&format!("{}: judged by lintian, installed and served", deb.display()))?;
    if let Containerfile::Read(reason) = containerfile {
        print_line(&format!("deploy/Containerfile was read and not built: {reason}"))?;
    }
    Ok(true)
}
