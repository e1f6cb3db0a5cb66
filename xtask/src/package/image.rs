//! The image: a root with the binary, the libraries that it is linked with, certificates, and a user who owns only
//! the folder of a database. No shell, no package manager. It is one layer in a layout of OCI, dated by the newest
//! commit, which `skopeo copy oci:target/package/image …` hands on.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::{PackageParts, STATE, USER, trial::Root};
use crate::{
    gateway::Profile,
    postgres::{PostgresServer, Purpose},
    shell::printed,
    workspace::{Workspace, emptied},
};

const PROGRAM: &str = "/usr/local/bin/holdfast";
const CONFIG: &str = "etc/holdfast/holdfast.toml";
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Makes the image; its folder.
pub(super) fn make(parts: &PackageParts) -> Result<PathBuf> {
    let root = emptied(&parts.folder.join("root"))?;
    let put = |from: &Path, to: &Path| -> Result<()> {
        let to = root.join(to.strip_prefix("/").unwrap_or(to));
        fs::create_dir_all(to.parent().context("a folder")?).context("no folder in the root")?;
        fs::copy(from, &to).with_context(|| format!("{} was not copied", from.display()))?;
        Ok(())
    };
    put(&parts.binary, Path::new(PROGRAM))?;
    if parts.profile == Profile::Dist {
        printed(Command::new("strip").arg(root.join(PROGRAM.trim_start_matches('/'))))?;
    }
    // `libc.so.6 => /lib/…/libc.so.6 (0x…)`, or the loader, which is named only by its path.
    let linked = printed(Command::new("ldd").arg(&parts.binary))?;
    for library in linked.split_whitespace().filter(|word| word.starts_with('/')) {
        put(Path::new(library), Path::new(library))?;
    }
    put(&Path::new("/").join(CERTIFICATES), Path::new(CERTIFICATES))?;
    for folder in [STATE, "etc/holdfast", "tmp"] {
        fs::create_dir_all(root.join(folder)).context("no folder in the root")?;
    }
    chown(root.join(STATE), Some(USER), Some(USER)).context("making the image needs root")?;
    fs::set_permissions(root.join("tmp"), fs::Permissions::from_mode(0o1777)).context("tmp")?;
    let user = format!("holdfast:x:{USER}:{USER}::/{STATE}:/nonexistent\n");
    fs::write(root.join("etc/passwd"), user).context("etc/passwd")?;
    fs::write(root.join("etc/group"), format!("holdfast:x:{USER}:\n")).context("etc/group")?;
    pack(parts, &root)
}

/// Puts a root into a layout of OCI.
fn pack(parts: &PackageParts, root: &Path) -> Result<PathBuf> {
    let image = emptied(&parts.folder.join("image"))?;
    let blobs = image.join("blobs/sha256");
    fs::create_dir_all(&blobs).context("no folder of blobs")?;
    let layer = parts.folder.join("layer.tar");
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", parts.epoch)).arg("--file").arg(&layer);
    printed(tar.arg("--directory").arg(root).arg("."))?;
    let keep = |file: &Path| -> Result<(String, u64)> {
        let printed_sum = printed(Command::new("sha256sum").arg(file))?;
        let digest = printed_sum.split_whitespace().next().context("no digest")?.to_owned();
        let bytes = fs::metadata(file).context("a blob")?.len();
        fs::rename(file, blobs.join(&digest)).context("a blob was not kept")?;
        Ok((format!("sha256:{digest}"), bytes))
    };
    let keep_json = |value: &Value| -> Result<(String, u64)> {
        let file = parts.folder.join("blob");
        fs::write(&file, value.to_string()).context("a blob was not written")?;
        keep(&file)
    };
    let (layer, layer_bytes) = keep(&layer)?;
    let config = json!({
        "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": [format!("HOLDFAST_CONFIG=/{CONFIG}")],
            "ExposedPorts": { "8080/tcp": {}, "8081/tcp": {} },
            "Entrypoint": [PROGRAM],
            "Cmd": ["serve"],
            "WorkingDir": format!("/{STATE}"),
        },
        "rootfs": { "type": "layers", "diff_ids": [layer] },
    });
    let (config, config_bytes) = keep_json(&config)?;
    let kind = |name: &str| format!("application/vnd.oci.image.{name}");
    let (manifest, manifest_bytes) = keep_json(&json!({
        "schemaVersion": 2,
        "mediaType": kind("manifest.v1+json"),
        "config": { "mediaType": kind("config.v1+json"), "digest": config, "size": config_bytes },
        "layers": [{ "mediaType": kind("layer.v1.tar"), "digest": layer, "size": layer_bytes }],
    }))?;
    let index = json!({
        "schemaVersion": 2,
        "manifests": [{
            "mediaType": kind("manifest.v1+json"), "digest": manifest, "size": manifest_bytes,
            "annotations": { "org.opencontainers.image.ref.name": "holdfast" },
        }],
    });
    fs::write(image.join("index.json"), index.to_string()).context("index.json")?;
    let version = json!({ "imageLayoutVersion": "1.0.0" });
    fs::write(image.join("oci-layout"), version.to_string()).context("oci-layout")?;
    Ok(image)
}

/// Unpacks the image by its own files, and starts it as `compose.yaml` does, on a database of its own.
pub(super) fn try_out(workspace: &Workspace, parts: &PackageParts, image: &Path) -> Result<()> {
    let text_at = |value: &Value, place: &str| -> Result<String> {
        let text = value.pointer(place).and_then(Value::as_str).map(str::to_owned);
        text.with_context(|| format!("the image has no {place}"))
    };
    let blob = |value: &Value, place: &str| -> Result<PathBuf> {
        let digest = text_at(value, place)?.replace("sha256:", "");
        Ok(image.join("blobs/sha256").join(digest))
    };
    let read = |file: PathBuf| -> Result<Value> {
        let text = fs::read(&file).with_context(|| file.display().to_string())?;
        serde_json::from_slice(&text).with_context(|| file.display().to_string())
    };
    let manifest = read(image.join("index.json"))?;
    let manifest = read(blob(&manifest, "/manifests/0/digest")?)?;
    let config = read(blob(&manifest, "/config/digest")?)?;
    let root = emptied(&parts.folder.join("unpacked"))?;
    let layers = manifest.pointer("/layers").and_then(Value::as_array).map_or(0, Vec::len);
    ensure!(layers > 0, "the image has no layer");
    for layer in 0..layers {
        let layer = blob(&manifest, &format!("/layers/{layer}/digest"))?;
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--numeric-owner", "--same-permissions", "--file"]).arg(layer);
        printed(tar.arg("--directory").arg(&root))?;
    }
    let text =
        fs::read_to_string(workspace.root.join("deploy/compose.toml")).context("compose.toml")?;
    // On ports that the kernel chooses. The address of a node is then known only to its process.
    let addresses = ["8080", "8081", "8082"]
        .iter()
        .fold(text, |text, port| text.replace(&format!("\"0.0.0.0:{port}\""), "\"127.0.0.1:0\""));
    let lines = addresses.lines().filter(|line| !line.starts_with("advertise = "));
    let lines: Vec<&str> = lines.collect();
    // The path at which compose mounts it.
    fs::create_dir_all(root.join(CONFIG).parent().context("a folder")?).context("its folder")?;
    fs::write(root.join(CONFIG), lines.join("\n")).context("the configuration")?;
    // The one that listens on TCP: its socket is not in the root.
    let server = PostgresServer::start(Purpose::Bench)?;
    server.execute("CREATE DATABASE image OWNER holdfast_bench")?;
    let [(_name, url), _binaries] = server.env();
    let mut env = vec![("HOLDFAST_DATABASE_URL", format!("{}/image", url.display()))];
    for name in ["DB_PASSWORD", "HOLDFAST_SECRET", "HOLDFAST_ADMIN_TOKEN"] {
        env.push((name, "given-by-the-environment".to_owned()));
    }
    let given =
        config.pointer("/config/Env").and_then(Value::as_array).context("no environment")?;
    env.extend(given.iter().filter_map(Value::as_str).filter_map(|it| {
        let (name, value) = it.split_once('=')?;
        Some((name, value.to_owned()))
    }));
    let user = text_at(&config, "/config/User")?;
    let program = text_at(&config, "/config/Entrypoint/0")?;
    let started = Root { folder: &root, program: &program, user: &user, env: &env };
    started.run(&["migrate", "up"])?;
    started.serve()
}
