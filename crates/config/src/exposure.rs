//! Secrets that are written in a configuration file which others may read.
//!
//! Such a file is still accepted: its readers may be few and known, as when a service's group reads a file of
//! root's. A check, a start and a reload warn of it once, by the names of the keys. A file that names variables
//! and other files contains no secret, and may be readable by all users.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Read bits of the group and of everybody.
const OTHERS_READ: u32 = 0o044;

/// A file that others may read, and the keys of the secrets that are written in it; its text contains the
/// remedy, and no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretExposure {
    file: PathBuf,
    fields: Vec<String>,
}

impl SecretExposure {
    /// Exposure of these fields by the mode of their file; `None` if there is none.
    pub(crate) fn of(file: &Path, fields: &[String]) -> Option<Self> {
        if fields.is_empty() {
            return None;
        }
        // A pipe has no readers but its own. What cannot be looked at is not known to be open.
        let about = fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
        let is_open = about.mode() & OTHERS_READ != 0;
        is_open.then(|| Self { file: file.to_path_buf(), fields: fields.to_vec() })
    }
}

impl fmt::Display for SecretExposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        let fields: Vec<_> = self.fields.iter().map(|field| format!("`{field}`")).collect();
        write!(
            f,
            "{file} is a file that others may read, and secrets are written in it, in {}: run `chmod 600 {file}` \
             where its owner runs the gateway, or write ${{NAME}} or ${{file:/run/secrets/NAME}} in their place",
            fields.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_file_is_open_by_its_mode_and_only_where_it_has_a_secret() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("holdfast.toml");
        fs::write(&file, "").unwrap();
        let fields = ["admin.token".to_owned(), "server.secrets".to_owned()];
        for (mode, is_open) in [(0o600, false), (0o622, false), (0o640, true), (0o604, true)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(SecretExposure::of(&file, &fields).is_some(), is_open, "{mode:o}");
            assert_eq!(SecretExposure::of(&file, &[]), None);
        }
        let told = SecretExposure::of(&file, &fields).unwrap().to_string();
        assert!(told.contains("`admin.token`, `server.secrets`: run `chmod 600 "), "{told}");
        assert_eq!(SecretExposure::of(Path::new("/dev/null"), &fields), None, "no regular file");
    }
}
