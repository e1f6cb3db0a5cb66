//! `cargo xtask package`: what is handed to users, made from one build and then tried: a Debian package, and the
//! root of an image.
//!
//! ```text
//! build ─▶ manual pages, completions ─▶ .deb ─▶ lintian ─▶ installed into a new root of Debian ─▶ started there
//!      └─▶ root: binary, libraries, certificates ─▶ image (OCI) ─▶ unpacked ─▶ migrated and started there
//! ```
//!
//! Each is started in a chroot and a process namespace of its own, by its own user, on loopback: no daemon of
//! containers and no systemd takes part, and nothing of the machine is changed but `target/package`. It needs
//! root, for the two roots.

mod deb;
mod image;
mod trial;

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use crate::{
    gateway::{self, Profile},
    shell::say,
    workspace::Workspace,
};

/// A build that is packaged.
#[derive(Debug)]
struct Parts {
    profile: Profile,
    binary: PathBuf,
    /// Folder of all that is made here.
    folder: PathBuf,
    /// Seconds since the epoch of the newest commit, which everything that is packed is dated by.
    epoch: String,
}

/// Makes both and tries both; whether all of it went well.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let profile = Profile::chosen("package", args)?;
    let Some(binary) = gateway::build_plain(workspace, profile)? else { return Ok(false) };
    let folder = workspace.target.join("package");
    fs::create_dir_all(&folder).context("no folder for the packages")?;
    let epoch = workspace.newest_commit("%ct")?;
    let parts = Parts { profile, binary, folder, epoch };
    let image = image::make(&parts)?;
    image::try_out(workspace, &parts, &image)?;
    say(&format!("{}: unpacked, migrated and served by its own user", image.display()))?;
    let deb = deb::make(workspace, &parts)?;
    deb::try_out(workspace, &parts, &deb)?;
    say(&format!("{}: judged by lintian, installed and served", deb.display()))?;
    Ok(true)
}
