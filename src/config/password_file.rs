use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Why a password file can't be used. The messages quote nothing of it.
#[derive(Debug, thiserror::Error)]
pub enum UnfitPasswordFile {
    /// It is not there, or not for this user.
    #[error("can't be read: {0}")]
    Unreadable(#[from] io::Error),
    /// A folder, a device, a pipe.
    #[error("not a regular file")]
    Irregular,
    /// Every user of the machine could read or change it.
    #[error("readable or writable by others (mode {:04o})", .0 & 0o7777)]
    Open(u32),
    /// No password in its first line.
    #[error("its first line is empty")]
    Empty,
}

impl UnfitPasswordFile {
    /// What to do about it.
    pub fn remedy(&self, path: &Path) -> String {
        match self {
            Self::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                "create it: one line, the password".to_owned()
            }
            Self::Unreadable(_) => "let the user that runs cronlatch read it".to_owned(),
            Self::Irregular => "name a file with one line, the password".to_owned(),
            Self::Open(_) => format!("chmod 640 {}", path.display()),
            Self::Empty => "write the password into it".to_owned(),
        }
    }
}

/// More than any password.
const MAX_BYTES: u64 = 64 * 1024;

/// The first line of a password file.
///
/// # Errors
/// [`UnfitPasswordFile`] says why there is none.
pub fn read_password(path: &Path) -> Result<String, UnfitPasswordFile> {
    const OTHERS: u32 = 0o006;
    // Before it is opened: opening a named pipe would wait for a writer.
    if !std::fs::metadata(path)?.is_file() {
        return Err(UnfitPasswordFile::Irregular);
    }
    let file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(UnfitPasswordFile::Open(mode));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    match text.lines().next() {
        Some(password) if !password.is_empty() => Ok(password.to_owned()),
        _ => Err(UnfitPasswordFile::Empty),
    }
}
