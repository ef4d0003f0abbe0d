//! The command of an entry as cron starts it, `SHELL -c COMMAND`, in the keys that cronlatch has.

use super::percent::Parts;
use super::program::base_name;
use crate::job::Command;

/// cron's own shell.
const SH: &str = "/bin/sh";

/// Shells in which `printf ... | { COMMAND` works as in `sh`.
const LIKE_SH: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// What a job runs in the place of an entry's command.
pub(super) fn command(shell: Option<&str>, parts: &Parts) -> Command {
    let shell = shell.filter(|shell| !shell.is_empty()).unwrap_or(SH);
    let Some(input) = &parts.input else {
        return started_by(shell, parts.command.clone());
    };
    let words: Vec<String> = input.iter().map(|line| quoted(line)).collect();
    let input = format!("printf '%s\\n' {}", words.join(" "));
    if LIKE_SH.contains(&base_name(shell)) && fits_a_group(&parts.command) {
        // The line feed ends a comment too.
        return started_by(shell, format!("{input} | {{ {}\n}}", parts.command));
    }
    Command::Shell(format!("{input} | {} -c {}", quoted(shell), quoted(&parts.command)))
}

fn started_by(shell: &str, line: String) -> Command {
    if shell == SH { Command::Shell(line) } else { Command::Argv(vec![shell.to_owned(), "-c".to_owned(), line]) }
}

/// A here-document or a last backslash would swallow the end of the group.
fn fits_a_group(command: &str) -> bool {
    !command.contains("<<") && !command.ends_with('\\') && !command.trim().is_empty()
}

/// A word of the shell that means this text.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::super::percent::cut;
    use super::*;

    fn shell_line(text: &str) -> String {
        match command(None, &cut(text)) {
            Command::Shell(line) => line,
            Command::Argv(argv) => panic!("{argv:?}"),
        }
    }

    #[test]
    fn an_entry_for_sh_is_a_shell_line_and_one_for_another_shell_an_argv() {
        assert_eq!(shell_line("a | b > \"c\""), "a | b > \"c\"");
        let bash = command(Some("/bin/bash"), &cut("shopt -s nullglob"));
        assert_eq!(bash, Command::Argv(["/bin/bash", "-c", "shopt -s nullglob"].map(str::to_owned).into()));
    }

    #[test]
    fn standard_input_comes_through_a_pipe() {
        assert_eq!(
            shell_line("mail -s x joe%Joe,%%it's 5\\%"),
            "printf '%s\\n' Joe, '' 'it'\\''s 5%' | { mail -s x joe\n}"
        );
        assert_eq!(shell_line("cat <<x%a"), "printf '%s\\n' a | /bin/sh -c 'cat <<x'");
        let Command::Shell(line) = command(Some("/bin/csh"), &cut("cat%a")) else { panic!("csh knows no group") };
        assert_eq!(line, "printf '%s\\n' a | /bin/csh -c cat");
    }
}
