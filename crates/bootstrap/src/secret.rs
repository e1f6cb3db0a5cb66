//! The server secret of an installation that configures none: made once, beside the database.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use holdfast_domain::secret::ServerSecret;
use uuid::Uuid;

pub const FILE_NAME: &str = "server.secret";
const BYTES: usize = 32;
/// Permission bits of the group and of everybody.
const OTHERS_WRITE: u32 = 0o022;
const OTHERS_READ: u32 = 0o044;

/// Failure to read or make the server secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// API keys in force were made with one that is not here: a new one would refuse them all.
    #[error(
        "{0} is missing, and the API keys in the database were made with a server secret: put the file \
         back, or name in server.secrets the secret that they were made with"
    )]
    Lost(PathBuf),
    #[error("{0} is damaged: 64 hexadecimal digits are expected")]
    Damaged(PathBuf),
    /// Another user who may write the file could choose the secret.
    #[error("{path} is a file that others may write: run `chmod 600 {path}`", path = .0.display())]
    Writable(PathBuf),
    #[error("{0} cannot be read or written")]
    File(PathBuf, #[source] io::Error),
    #[error("the system gives no random bytes")]
    Random(#[source] aws_lc_rs::error::Unspecified),
}

/// Permission to make a missing secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfMissing {
    Make,
    /// API keys in force were made with it: a new one would refuse them all.
    Refuse,
}

/// Reads the secret in this folder, and creates it first if the folder has none. Two processes that start at
/// the same time agree on one.
pub fn read(folder: &Path, if_missing: IfMissing) -> Result<ServerSecret, SecretError> {
    let file = folder.join(FILE_NAME);
    match read_file(&file) {
        Err(SecretError::Lost(_)) if if_missing == IfMissing::Make => {
            make(folder, &file)?;
            read_file(&file)
        }
        read => read,
    }
}

/// Reads the secret that a file holds.
pub fn read_file(file: &Path) -> Result<ServerSecret, SecretError> {
    let failed = |error| SecretError::File(file.to_owned(), error);
    let text = match fs::read_to_string(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(SecretError::Lost(file.to_owned()));
        }
        read => read.map_err(failed)?,
    };
    if mode(file).map_err(failed)? & OTHERS_WRITE != 0 {
        return Err(SecretError::Writable(file.to_owned()));
    }
    // The digits themselves, so that they are the same secret where they are an entry of
    // server.secrets.
    let digits = text.trim_end();
    let is_whole = digits.len() == 2 * BYTES && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let secret = is_whole.then(|| ServerSecret::new(digits.as_bytes()));
    secret.and_then(Result::ok).ok_or(SecretError::Damaged(file.to_owned()))
}

/// Copies a file with a secret: readable only by its owner, and over no existing file.
pub fn copy(from: &Path, to: &Path) -> Result<(), SecretError> {
    // Read first: half a secret, or something else, is not worth a copy.
    read_file(from)?;
    let text =
        fs::read_to_string(from).map_err(|error| SecretError::File(from.to_owned(), error))?;
    let written = write(to, &text);
    if written.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::AlreadyExists) {
        // Half a secret would stand in the way of the next copy; where it was not made, nothing is removed.
        fs::remove_file(to).ok();
    }
    written.map_err(|error| SecretError::File(to.to_owned(), error))
}

/// True if others may read a secret that was created for its owner only.
pub fn is_open(folder: &Path) -> bool {
    mode(&folder.join(FILE_NAME)).is_ok_and(|mode| mode & OTHERS_READ != 0)
}

fn mode(file: &Path) -> io::Result<u32> {
    Ok(fs::metadata(file)?.mode())
}

/// Writes the whole file under a temporary name and renames it, unless another process was faster.
fn make(folder: &Path, file: &Path) -> Result<(), SecretError> {
    let failed = |error| SecretError::File(file.to_owned(), error);
    let mut bytes = [0; BYTES];
    aws_lc_rs::rand::fill(&mut bytes).map_err(SecretError::Random)?;
    // A link is made only where there is no file yet, and its file is whole: a reader never sees
    // half a secret, and the second of two processes takes the first one's.
    let draft = folder.join(format!("{FILE_NAME}.{}", Uuid::new_v4().as_simple()));
    let written = write(&draft, &to_hex(&bytes)).and_then(|()| match fs::hard_link(&draft, file) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        linked => linked,
    });
    // Also after a failed write, so that no draft with a secret in it stays behind.
    let removed = fs::remove_file(&draft);
    written.and(removed).and_then(|()| File::open(folder)?.sync_all()).map_err(failed)
}

fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn to_hex(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digits}\n")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_made_once_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let made = read(folder.path(), IfMissing::Make).unwrap();
        assert_eq!(read(folder.path(), IfMissing::Refuse).unwrap(), made);
        let file = folder.path().join(FILE_NAME);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
        let other = tempfile::tempdir().unwrap();
        assert_ne!(read(other.path(), IfMissing::Make).unwrap(), made);
        let content = fs::read_to_string(file).unwrap();
        assert_eq!(ServerSecret::new(content.trim_end().as_bytes()), Ok(made), "as an entry");
    }

    #[test]
    fn all_who_come_at_once_get_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let secrets: Vec<_> = std::thread::scope(|scope| {
            let readers: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| read(folder.path(), IfMissing::Make).unwrap()))
                .collect();
            readers.into_iter().map(|reader| reader.join().unwrap()).collect()
        });
        assert!(secrets.iter().all(|secret| *secret == secrets[0]));
    }

    #[test]
    fn one_that_others_may_write_is_refused_and_one_that_they_read_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        read(folder.path(), IfMissing::Make).unwrap();
        let file = folder.path().join(FILE_NAME);
        let change = |mode| fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        assert!(!is_open(folder.path()));
        for mode in [0o620, 0o602] {
            change(mode);
            let refused = read(folder.path(), IfMissing::Make).unwrap_err();
            assert!(refused.to_string().contains("chmod 600"), "{refused}");
        }
        change(0o640);
        assert!(read(folder.path(), IfMissing::Refuse).is_ok() && is_open(folder.path()));
    }

    #[test]
    fn a_lost_or_damaged_one_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let lost = read(folder.path(), IfMissing::Refuse);
        assert!(matches!(lost, Err(SecretError::Lost(_))));
        let file = folder.path().join(FILE_NAME);
        for text in ["", "00ff", &"zz".repeat(32), &"0".repeat(65), &"ff".repeat(33)] {
            fs::write(&file, text).unwrap();
            let damaged = read(folder.path(), IfMissing::Make);
            assert!(matches!(damaged, Err(SecretError::Damaged(_))), "{text}");
            assert_eq!(fs::read_to_string(&file).unwrap(), text);
        }
    }
}
