//! One entry: fields or a shorthand, a user if the form has one, a command.

use super::source::Form;
use super::times::{Read, Shorthand, shorthand};

/// The parts of an entry's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub when: When,
    pub user: Option<&'a str>,
    /// What stands behind, percent signs and all.
    pub command: &'a str,
    /// Whether a `-` stood before the minute: no line in the log of some crons.
    pub is_quiet: bool,
}

/// When an entry runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum When {
    Times(Read),
    Reboot,
}

const BLANKS: [char; 2] = [' ', '\t'];

/// Reads a line that is neither blank nor a comment, nor sets a variable.
///
/// # Errors
/// What is wrong with it, with a remedy.
pub(super) fn read(line: &str, form: Form) -> Result<Entry<'_>, String> {
    let line = line.trim_start_matches(BLANKS);
    let (is_quiet, line) = match line.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (when, rest) = if line.starts_with('@') { word_and_rest(line)? } else { fields_and_rest(line)? };
    let (user, command) = match form {
        Form::User => (None, rest),
        Form::System => {
            let (user, command) = next_word(rest);
            judge_user(user)?;
            (Some(user), command)
        }
    };
    match command {
        "" => Err("there is no command; write one behind the fields, or remove the line".to_owned()),
        command if command.starts_with('*') => {
            Err("a sixth field stands before the command; a crontab has five, minute first: remove one".to_owned())
        }
        command => Ok(Entry { when, user, command, is_quiet }),
    }
}

fn word_and_rest(line: &str) -> Result<(When, &str), String> {
    let (word, rest) = next_word(line);
    if is_of_anacron(&[word, next_word(rest).0, next_word(next_word(rest).1).0]) {
        return Err(OF_ANACRON.to_owned());
    }
    let when = match shorthand(word)? {
        Shorthand::Reboot => When::Reboot,
        Shorthand::Fields(fields) => When::Times(Read::shorthand(word, fields)?),
    };
    Ok((when, rest))
}

fn fields_and_rest(line: &str) -> Result<(When, &str), String> {
    let mut tokens = [""; 5];
    let mut rest = line;
    for token in &mut tokens {
        (*token, rest) = next_word(rest);
    }
    if is_of_anacron(&tokens) {
        return Err(OF_ANACRON.to_owned());
    }
    let found = tokens.iter().filter(|token| !token.is_empty()).count();
    if found < tokens.len() {
        let fields = "minute, hour, day of month, month, day of week";
        return Err(format!("it has {found} of five fields; write {fields}, then a command"));
    }
    Ok((When::Times(Read::fields(tokens)?), rest))
}

/// A word, and what follows behind its blanks.
fn next_word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_at(text.find(BLANKS).unwrap_or(text.len()));
    (word, rest.trim_start_matches(BLANKS))
}

const OF_ANACRON: &str = "an entry of anacron (period, delay, name, command), not of a crontab; \
                          write a job with schedule = \"@daily\" and the like, cronlatch catches up by itself";

/// `1 5 cron.daily COMMAND`, `@monthly 45 cron.monthly COMMAND`: the third is a name with a dot.
fn is_of_anacron(tokens: &[&str]) -> bool {
    let number = |token: &str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = |token: &str| token.contains('.') && token.starts_with(|c: char| c.is_ascii_alphabetic());
    (number(tokens[0]) || tokens[0].starts_with('@')) && number(tokens[1]) && is_name(tokens[2])
}

/// A user as the command line names it.
///
/// # Errors
/// What is wrong with the name.
pub(super) fn user(name: &str) -> Result<String, String> {
    if is_user(name) { Ok(name.to_owned()) } else { Err("that can't be a user".to_owned()) }
}

fn is_user(name: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || "_-.@$\\".contains(c);
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    name.starts_with(|c: char| c.is_alphanumeric() || c == '_') && name.chars().all(is_name) && !is_number
}

/// Whether there is such a user is the host's affair; what can't be one is told.
fn judge_user(user: &str) -> Result<(), String> {
    if user.is_empty() {
        return Err("there is no user behind the fields; write one, and then a command".to_owned());
    }
    if looks_like_a_field(user) {
        return Err(format!("{user:?} stands in the user column; a crontab has five fields, minute first: remove one"));
    }
    if !is_user(user) {
        return Err(format!("{user:?} can't be a user; write the user before the command, as in a system crontab"));
    }
    Ok(())
}

/// `*/5`, `1-5`, `0`: what people put before the minute for seconds, or behind for a year.
pub(super) fn looks_like_a_field(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit() || b"*/,-?".contains(&byte)) && word != "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str, form: Form) -> (String, Option<&str>, &str) {
        let entry = read(line, form).unwrap_or_else(|wrong| panic!("{line}: {wrong}"));
        let when = match entry.when {
            When::Times(read) => read.text,
            When::Reboot => "@reboot".to_owned(),
        };
        (when, entry.user, entry.command)
    }

    #[test]
    fn blanks_and_tabs_stand_between_the_parts() {
        let times = || "*/5 0 * * 1-5".to_owned();
        assert_eq!(parts("  */5\t0 *  * 1-5   /bin/x -a  b ", Form::User), (times(), None, "/bin/x -a  b "));
        assert_eq!(parts("*/5 0 * * 1-5\troot\t/bin/x", Form::System), (times(), Some("root"), "/bin/x"));
        assert_eq!(parts("@reboot root /bin/x", Form::System), ("@reboot".to_owned(), Some("root"), "/bin/x"));
        assert_eq!(parts("@daily x", Form::User), ("@daily".to_owned(), None, "x"));
        assert!(read("-*/5 * * * * root x", Form::System).unwrap().is_quiet);
    }

    #[test]
    fn a_line_that_is_no_entry_gets_a_remedy() {
        for (line, form, part) in [
            ("* * * *", Form::User, "4 of five fields"),
            ("* * * * *", Form::User, "no command"),
            ("* * * * *   ", Form::User, "no command"),
            ("@daily", Form::User, "no command"),
            ("* * * * * root", Form::System, "no command"),
            ("* * * * *", Form::System, "no user"),
            ("0 */5 * * * * x", Form::User, "sixth field"),
            ("0 */5 * * * * root x", Form::System, "\"*\" stands in the user column"),
            ("0 0 3 * * 1 root x", Form::System, "\"1\" stands in the user column"),
            ("*/5 * * * * /usr/bin/x -a", Form::System, "can't be a user"),
            ("*/5 * * * * (x; y)", Form::System, "can't be a user"),
            ("1 5 cron.daily nice run-parts /etc/cron.daily", Form::User, "of anacron"),
            ("@monthly 45 cron.monthly nice run-parts /etc/cron.monthly", Form::User, "of anacron"),
            ("@every 5m x", Form::User, "*/5 * * * *"),
            ("0 0 * * FOO x", Form::User, "day of week \"FOO\""),
            ("every day", Form::User, "2 of five fields"),
        ] {
            let wrong = read(line, form).unwrap_err();
            assert!(wrong.contains(part), "{line}: {wrong}");
        }
    }
}
