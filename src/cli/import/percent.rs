//! The percent signs of a command: the first that no backslash escapes ends it.

/// A command, and what it reads from its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub command: String,
    /// Each with its line feed; `None` where the command reads nothing.
    pub input: Option<Vec<String>>,
    /// Whether Debian's cron has made one backslash of two. Others leave both.
    pub halved: bool,
}

/// Cuts what stands behind the fields of a line.
pub(super) fn cut(text: &str) -> Parts {
    let mut parts = Parts { command: String::new(), input: None, halved: false };
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '%' => {
                parts.input = Some(lines(rest.as_str())).filter(|lines| !lines.is_empty());
                break;
            }
            '\\' => match rest.next() {
                Some('%') => parts.command.push('%'),
                Some('\\') => {
                    parts.command.push('\\');
                    parts.halved = true;
                }
                Some(other) => parts.command.extend(['\\', other]),
                None => parts.command.push('\\'),
            },
            other => parts.command.push(other),
        }
    }
    parts
}

/// Each further percent sign is a line feed; cron adds one at the end if there is none.
fn lines(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '%' => lines.push(String::new()),
            '\\' if rest.peek() == Some(&'%') => lines.last_mut().into_iter().for_each(|line| line.extend(rest.next())),
            other => lines.last_mut().into_iter().for_each(|line| line.push(other)),
        }
    }
    if lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, Vec<String>) {
        let parts = cut(text);
        (parts.command, parts.input.unwrap_or_default())
    }

    fn owned(command: &str, input: &[&str]) -> (String, Vec<String>) {
        (command.to_owned(), input.iter().map(|line| (*line).to_owned()).collect())
    }

    #[test]
    fn the_first_plain_percent_sign_begins_the_input_and_the_others_are_line_feeds() {
        // As the real daemon of Debian (3.0pl1-162) does it.
        assert_eq!(parts(r"cat%a\%b%c\\d%\x%%e"), owned("cat", &["a%b", r"c\\d", r"\x", "", "e"]));
        assert_eq!(parts("cat%"), owned("cat", &[]));
        assert_eq!(parts("cat%%"), owned("cat", &[""]));
        assert_eq!(parts("cat%a%"), owned("cat", &["a"]));
        assert_eq!(parts("cat%a%%"), owned("cat", &["a", ""]));
        assert_eq!(parts(r"cat%a\"), owned("cat", &[r"a\"]));
    }

    #[test]
    fn a_backslash_escapes_a_percent_sign_and_itself() {
        assert_eq!(parts(r"date +\%F"), owned("date +%F", &[]));
        assert_eq!(parts(r"a \\% b"), owned(r"a \", &[" b"]));
        assert_eq!(parts(r"a \n \"), owned(r"a \n \", &[]));
        assert!(cut(r"a \\ b").halved && !cut(r"a \% \n").halved);
    }
}
