use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::document::unsafe_as_root;
use super::problem::{Problem, Scope};

/// The folder beside the main file with more jobs.
pub const FOLDER: &str = "jobs.d";

/// The files of the folder in the order of their names, which is the same on all hosts. No folder,
/// no files. Hidden files are left out: editors and package managers put halves there.
pub fn list(folder: &Path, root: bool) -> (Vec<PathBuf>, Vec<Problem>) {
    let scope = Scope::JobFile(folder.to_owned());
    match read(folder) {
        Ok((metadata, files)) => (files, if root { unsafe_as_root(folder, &scope, &metadata) } else { Vec::new() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => (Vec::new(), Vec::new()),
        Err(error) => {
            let remedy = "let the user that runs cronlatch list it, or remove it";
            (Vec::new(), vec![Problem::of_file(scope, folder.to_owned(), format!("can't be read: {error}"), remedy)])
        }
    }
}

fn read(folder: &Path) -> io::Result<(Metadata, Vec<PathBuf>)> {
    let metadata = fs::metadata(folder)?;
    let names = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.retain(|name| is_job_file(name));
    names.sort();
    Ok((metadata, names.into_iter().map(|name| folder.join(name)).collect()))
}

fn is_job_file(name: &OsStr) -> bool {
    !name.as_bytes().starts_with(b".") && Path::new(name).extension() == Some(OsStr::new("toml"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    use super::*;

    #[test]
    fn hidden_files_and_other_endings_are_left_out() {
        assert!(is_job_file(OsStr::new("a.toml")));
        for other in [".a.toml", "a.toml~", "a.toml.dpkg-new", ".#a.toml", "toml"] {
            assert!(!is_job_file(OsStr::new(other)), "{other}");
        }
    }

    #[test]
    fn as_root_a_folder_that_others_can_write_puts_all_its_files_out_of_use() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o775)).expect("it is ours");
        let (_, problems) = list(folder.path(), true);
        let ours = fs::metadata(folder.path()).expect("it is there").uid() == 0;
        assert_eq!(problems.len(), if ours { 1 } else { 2 }, "whoever runs the test may not be root");
        assert!(problems[0].scope.holds(&Scope::JobFile(folder.path().join("a.toml"))));
        assert!(!problems[0].scope.holds(&Scope::Settings));
    }
}
