//! The command of an entry as cron starts it, `SHELL -c COMMAND`, in the keys that cronlatch has.

use crate::job::Command;

/// cron's own shell.
const SH: &str = "/bin/sh";

/// What a job runs in the place of an entry's command.
pub(super) fn command(shell: Option<&str>, command: &str) -> Command {
    match shell.filter(|shell| !shell.is_empty()) {
        None | Some(SH) => Command::Shell(command.to_owned()),
        Some(shell) => Command::Argv(vec![shell.to_owned(), "-c".to_owned(), command.to_owned()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_for_sh_is_a_shell_line_and_one_for_another_shell_an_argv() {
        for shell in [None, Some(""), Some("/bin/sh")] {
            assert_eq!(command(shell, "a | b > \"c\""), Command::Shell("a | b > \"c\"".to_owned()));
        }
        let bash = command(Some("/bin/bash"), "shopt -s nullglob");
        assert_eq!(bash, Command::Argv(["/bin/bash", "-c", "shopt -s nullglob"].map(str::to_owned).into()));
    }
}
