//! TOML as people would write it.

use crate::job::Command;

/// A table in the making, line by line.
#[derive(Debug, Default)]
pub(super) struct Table(String);

impl Table {
    /// `[jobs.NAME]`, with a remark above it.
    pub(super) fn job(name: &str, above: &str) -> Self {
        Self(format!("{}[jobs.{}]\n", comment(above), key(name)))
    }

    /// A key with a text.
    pub(super) fn text(&mut self, name: &str, value: &str) {
        self.0 += &format!("{name} = {}\n", string(value));
    }

    /// `shell` or `command`.
    pub(super) fn command(&mut self, command: &Command) {
        match command {
            Command::Shell(line) => self.text("shell", line),
            Command::Argv(argv) => {
                let words: Vec<String> = argv.iter().map(|word| string(word)).collect();
                self.0 += &format!("command = [{}]\n", words.join(", "));
            }
        }
    }

    /// A key with names and texts.
    pub(super) fn texts(&mut self, name: &str, values: &[(String, String)]) {
        let pairs: Vec<String> =
            values.iter().map(|(name, value)| format!("{} = {}", key(name), string(value))).collect();
        self.0 += &format!("{name} = {{ {} }}\n", pairs.join(", "));
    }

    /// A line that says something to people only.
    pub(super) fn remark(&mut self, text: &str) {
        self.0 += &comment(text);
    }

    /// What was written.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A line, or several, that TOML leaves out.
pub(super) fn comment(text: &str) -> String {
    let clean = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    text.lines().map(|line| format!("# {}\n", line.chars().map(clean).collect::<String>())).collect()
}

fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if bare { name.to_owned() } else { string(name) }
}

/// A string in single quotes where that saves escapes, else in double quotes.
pub(super) fn string(text: &str) -> String {
    if text.contains(['"', '\\']) && !text.contains(|c: char| c == '\'' || c.is_control()) {
        return format!("'{text}'");
    }
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_have_as_few_escapes_as_can_be() {
        assert_eq!(string("a b"), "\"a b\"");
        assert_eq!(string("say \"a\\b\""), "'say \"a\\b\"'");
        assert_eq!(string("it's \"a\""), "\"it's \\\"a\\\"\"");
        assert_eq!(string("a\n\t\u{7}\u{7f}"), "\"a\\n\\t\\u0007\\u007F\"");
    }

    proptest! {
        #[test]
        fn whatever_is_written_is_read_back(value in any::<String>(), name in "\\PC{1,20}") {
            let mut table = Table::job(&name, &value);
            table.text("shell", &value);
            table.texts("env", &[(name.clone(), value.clone())]);
            table.remark(&value);
            let text = table.finish();
            let read: toml::Table = toml::from_str(&text).map_err(|error| TestCaseError::fail(format!("{error}: {text}")))?;
            let job = &read["jobs"][&name];
            prop_assert_eq!(job["shell"].as_str(), Some(value.as_str()));
            prop_assert_eq!(job["env"][&name].as_str(), Some(value.as_str()));
        }
    }
}
