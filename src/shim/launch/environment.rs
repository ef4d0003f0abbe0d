use std::ffi::CString;
use std::path::Path;

use super::account::Account;
use super::{Failed, OrFailed, refused};
use crate::shim::wire::SpawnRequest;

/// The whole environment, later ones over earlier ones: the base, who the job runs as, its `env_file`,
/// what the request sets.
pub(super) fn merge(request: &SpawnRequest, account: &Account) -> Result<Vec<(String, String)>, Failed> {
    let mut env = request.base_env.clone();
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let own = [("HOME", text(&account.home)), ("USER", account.name.clone()), ("LOGNAME", account.name.clone())];
    own.into_iter().for_each(|(name, value)| set(&mut env, name, value));
    if let Some(path) = &request.setup.env_file {
        let file = std::fs::read_to_string(path).or_failed_with(|| format!("read env_file {path:?}"))?;
        for (name, value) in
            parse(&file).map_err(|(line, why)| refused(format!("read env_file {path:?}, line {line}"), why))?
        {
            set(&mut env, &name, value);
        }
    }
    request.env.iter().for_each(|(name, value)| set(&mut env, name, value.clone()));
    Ok(env)
}

fn set(env: &mut Vec<(String, String)>, name: &str, value: String) {
    env.retain(|(known, _)| known != name);
    env.push((name.to_owned(), value));
}

/// Lines of `NAME=VALUE`, as `systemd.exec(5)` has them in simple cases: empty lines and lines that start
/// with `#` are left out, as is `export` before a name; a value in single or double quotes is what stands
/// between them. Nothing is expanded. An error is the line's number, from 1, and what is wrong.
fn parse(text: &str) -> Result<Vec<(String, String)>, (usize, &'static str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with(['#', ';'])).map(variable).collect()
}

fn variable((number, line): (usize, &str)) -> Result<(String, String), (usize, &'static str)> {
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=').ok_or((number, "it is not NAME=VALUE"))?;
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_whitespace);
    if !is_name(name) {
        return Err((number, "its name is empty or holds blanks"));
    }
    if value.contains('\0') {
        return Err((number, "its value holds a NUL"));
    }
    let quoted = |quote| value.strip_prefix(quote).and_then(|rest: &str| rest.strip_suffix(quote));
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    Ok((name.to_owned(), value.to_owned()))
}

/// A text as the kernel takes it.
pub(super) fn c_string(text: &str) -> Result<CString, Failed> {
    CString::new(text).map_err(|_| refused("execute it".to_owned(), "an argument or a variable holds a NUL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_env_file_is_read_as_its_author_expects() {
        let text = "# a comment\n\nA=1\n export B = x\n";
        assert_eq!(parse(text), Err((4, "its name is empty or holds blanks")));
        let text = "A=1\nexport B=\"two words\"\n; also a comment\nC='$HOME'\nD=\nE=a=b\r\nF=\"\n";
        let expected = [("A", "1"), ("B", "two words"), ("C", "$HOME"), ("D", ""), ("E", "a=b"), ("F", "\"")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text), Ok(expected.to_vec()));
        assert_eq!(parse("A=1\nodd"), Err((2, "it is not NAME=VALUE")));
    }
}
