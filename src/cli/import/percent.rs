//! The percent signs of a command: the first that no backslash escapes ends it.

/// A command, and what it reads from its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub command: String,
    /// `None` where the command reads nothing; else it ends with a line feed.
    pub input: Option<String>,
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
                parts.input = Some(input(rest.as_str())).filter(|input| !input.is_empty());
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
fn input(text: &str) -> String {
    let mut input = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '%' => input.push('\n'),
            '\\' if rest.peek() == Some(&'%') => input.extend(rest.next()),
            other => input.push(other),
        }
    }
    if !input.is_empty() && !input.ends_with('\n') {
        input.push('\n');
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (String, String) {
        let parts = cut(text);
        (parts.command, parts.input.unwrap_or_default())
    }

    fn owned(command: &str, input: &str) -> (String, String) {
        (command.to_owned(), input.to_owned())
    }

    #[test]
    fn the_first_plain_percent_sign_begins_the_input_and_the_others_are_line_feeds() {
        // As the real daemon of Debian (3.0pl1-162) does it.
        assert_eq!(parts(r"cat%a\%b%c\\d%\x%%e"), owned("cat", "a%b\nc\\\\d\n\\x\n\ne\n"));
        assert_eq!(parts("cat%"), owned("cat", ""));
        assert_eq!(parts("cat%%"), owned("cat", "\n"));
        assert_eq!(parts("cat%a%"), owned("cat", "a\n"));
        assert_eq!(parts("cat%a%%"), owned("cat", "a\n\n"));
        assert_eq!(parts(r"cat%a\"), owned("cat", "a\\\n"));
    }

    #[test]
    fn a_backslash_escapes_a_percent_sign_and_itself() {
        assert_eq!(parts(r"date +\%F"), owned("date +%F", ""));
        assert_eq!(parts(r"a \\% b"), owned(r"a \", " b\n"));
        assert_eq!(parts(r"a \n \"), owned(r"a \n \", ""));
        assert!(cut(r"a \\ b").halved && !cut(r"a \% \n").halved);
    }
}
