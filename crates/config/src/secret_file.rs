//! Secrets that a supervisor gives as files: `${file:/run/secrets/x}`, as containers, Kubernetes and
//! systemd (`LoadCredential`) mount them. A file is read whenever the configuration is, so that a new
//! secret is taken by a reload.
//!
//! A file that others may write is refused, and one that they may replace ([`secret_path`]): they could choose the
//! secret. Its readers are the supervisor's business: mounts are often readable for all inside their container.

use std::io::Read;
use std::path::Path;

use crate::secret_path::{self, PathRefusal};

/// Longest secret that is read, in bytes.
const BYTES_MAX: u64 = 65_536;

/// Reads the secret of a file that the file of this configuration names, without the line end that editors leave; the
/// error goes on from the name of the key.
pub(crate) fn read(path: &str, configuration: &Path) -> Result<String, String> {
    if !Path::new(path).is_absolute() {
        return Err(format!(
            "names the file {path:?}: write its whole path, like /run/secrets/key"
        ));
    }
    let opened = secret_path::open(Path::new(path), configuration);
    let (file, _about) = opened.map_err(|refusal| message(path, refusal))?;
    let mut text = String::new();
    // One byte more than the limit shows that the file is larger.
    file.take(BYTES_MAX.saturating_add(1))
        .read_to_string(&mut text)
        .map_err(|error| unreadable(path, &error))?;
    let secret = text.strip_suffix('\n').unwrap_or(&text);
    let secret = secret.strip_suffix('\r').unwrap_or(secret);
    if secret.is_empty() || u64::try_from(secret.len()).is_ok_and(|bytes| bytes > BYTES_MAX) {
        return Err(format!("needs the file {path}, which is empty or longer than 64 KiB"));
    }
    Ok(secret.to_owned())
}

fn unreadable(path: &str, error: &std::io::Error) -> String {
    format!("needs the file {path}, which cannot be read: {error}")
}

/// The reason and the remedy.
fn message(path: &str, refusal: PathRefusal) -> String {
    match refusal {
        PathRefusal::Unreadable(error) => unreadable(path, &error),
        PathRefusal::ForeignOwner(other) => format!(
            "needs the file {path}, but {} belongs to another user: chown it to root or to the gateway's user. In a \
             container, mount the secret with `readOnly: true`: its owner is then not judged",
            other.display()
        ),
        PathRefusal::WritableFolder(folder) => format!(
            "needs the file {path}, but others may write in its folder {folder}: chmod go-w {folder}. In a \
             container, mount the secret with `readOnly: true`: the folder's mode is then not judged",
            folder = folder.display()
        ),
        PathRefusal::WritableFile => {
            format!("needs the file {path}, which others may write: chmod go-w {path}")
        }
        PathRefusal::NotFile => format!("needs the file {path}, which is no file"),
        PathRefusal::Replaced => format!(
            "needs the file {path}, which was replaced while it was opened: have the configuration read once more"
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read(path: &str) -> Result<String, String> {
        super::read(path, Path::new("/nothing"))
    }

    #[test]
    fn a_secret_is_read_without_its_line_end_and_not_where_others_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let name = path.to_str().unwrap();
        let missing = read(name).unwrap_err();
        assert!(missing.contains("cannot be read"), "{missing}");
        let with = |text: &str, mode| {
            write(&path, text).unwrap();
            set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            read(name)
        };
        assert_eq!(with("hunter2 \n", 0o644).unwrap(), "hunter2 ");
        assert_eq!(with("hunter2\r\n", 0o400).unwrap(), "hunter2");
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(with("two\nlines", 0o600).unwrap(), "two\nlines");
        for (text, mode, part) in [
            ("hunter2", 0o620, "chmod go-w"),
            ("hunter2", 0o602, "chmod go-w"),
            ("\n", 0o600, "empty"),
            (&"x".repeat(70_000), 0o600, "longer"),
        ] {
            let refused = with(text, mode).unwrap_err();
            assert!(refused.contains(part) && !refused.contains("hunter2"), "{refused}");
        }
        let folder = read(folder.path().to_str().unwrap()).unwrap_err();
        assert!(folder.contains("is no file"), "{folder}");
        let relative = read("secrets/key").unwrap_err();
        assert!(relative.contains("write its whole path"), "{relative}");
    }
}
