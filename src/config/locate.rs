use std::ffi::OsString;
use std::path::PathBuf;

/// Where the main file is unless somebody says otherwise.
pub const DEFAULT_PATH: &str = "/etc/cronlatch/cronlatch.toml";

/// The variable that names the main file.
pub const VARIABLE: &str = "CRONLATCH_CONFIG";

/// The main file: the one named on the command line, else by `CRONLATCH_CONFIG`, else
/// [`DEFAULT_PATH`]. It may not exist.
pub fn locate(cli: Option<PathBuf>) -> PathBuf {
    choose(cli, std::env::var_os(VARIABLE))
}

/// An empty variable is an unset one, as scripts clear it that way.
fn choose(cli: Option<PathBuf>, variable: Option<OsString>) -> PathBuf {
    let variable = variable.filter(|path| !path.is_empty()).map(PathBuf::from);
    cli.or(variable).unwrap_or_else(|| PathBuf::from(DEFAULT_PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_wins_over_the_variable_and_that_over_the_default() {
        assert_eq!(choose(Some("a".into()), Some("b".into())), PathBuf::from("a"));
        assert_eq!(choose(None, Some("b".into())), PathBuf::from("b"));
        assert_eq!(choose(None, Some("".into())), PathBuf::from(DEFAULT_PATH));
        assert_eq!(choose(None, None), PathBuf::from(DEFAULT_PATH));
    }
}
