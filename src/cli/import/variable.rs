//! An environment line, `NAME = value`, as crontab(5) has it.

/// A variable as a line sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variable {
    pub name: String,
    pub value: String,
}

/// Reads a line; `None` if it sets no variable, and so is an entry.
///
/// Name and value may stand in quotes, single or double, which keep blanks inside. Without them the
/// value ends before the blanks at the line's end. Nothing in it is expanded.
pub(super) fn read(line: &str) -> Option<Variable> {
    let line = line.trim_start_matches([' ', '\t']);
    let (name, rest) = match quoted(line) {
        Some((name, _)) if name.contains('=') => return None,
        Some(found) => found,
        // An opening quote without its end is part of nothing.
        None if line.starts_with(['"', '\'']) => return None,
        None => line.split_at(line.find(|c: char| c.is_ascii_whitespace() || c == '=')?),
    };
    let value = rest.trim_start_matches(|c: char| c.is_ascii_whitespace()).strip_prefix('=')?;
    let value = value.trim_start_matches(|c: char| c.is_ascii_whitespace());
    let value = match quoted(value) {
        Some((value, rest)) if rest.trim_matches(|c: char| c.is_ascii_whitespace()).is_empty() => value,
        Some(_) => return None,
        None if value.starts_with(['"', '\'']) => return None,
        None => value.trim_end_matches(|c: char| c.is_ascii_whitespace()),
    };
    Some(Variable { name: name.to_owned(), value: value.to_owned() })
}

/// What stands in the quotes that a text begins with, and what stands behind them.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split_once(quote)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn sets(line: &str, name: &str, value: &str) {
        assert_eq!(read(line), Some(Variable { name: name.to_owned(), value: value.to_owned() }), "{line}");
    }

    #[test]
    fn names_and_values_may_have_quotes_and_blanks_around_the_sign() {
        sets("MAILTO=root", "MAILTO", "root");
        sets("  A = b c  ", "A", "b c");
        sets("A\t=\t\"  b \" ", "A", "  b ");
        sets("'A B' = 'c \"d\"'", "A B", "c \"d\"");
        sets("A=", "A", "");
        sets("MAILTO=\"\"", "MAILTO", "");
        sets("PATH=$HOME/bin:$PATH # mine", "PATH", "$HOME/bin:$PATH # mine");
        sets("A=b=c", "A", "b=c");
        sets("A=it's", "A", "it's");
    }

    #[test]
    fn entries_and_broken_quotes_set_nothing() {
        for line in [
            "0 5 * * * A=b cmd",
            "@daily A=b cmd",
            "*/5 * * * * x=1",
            "A",
            "",
            "A='it''s'",
            "A=\"open",
            "\"A=b",
            "\"A=\" = b",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
