//! A shell line cut into words, as far as it takes to name a job: nothing is expanded or run.

/// A line as it was cut.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    /// The words of each simple command, redirections left out.
    pub commands: Vec<Vec<String>>,
    /// Whether a quote or a substitution is open at the end: the line was cut short.
    pub is_open: bool,
}

/// Cuts a line at blanks and operators.
pub(super) fn cut(text: &str) -> Line {
    let mut cutter = Cutter { rest: text, line: Line::default(), words: Vec::new(), redirected: false };
    cutter.run();
    cutter.line
}

struct Cutter<'a> {
    rest: &'a str,
    line: Line,
    words: Vec<String>,
    /// Whether the next word is a redirection's file.
    redirected: bool,
}

impl<'a> Cutter<'a> {
    fn run(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            match c {
                ' ' | '\t' => self.skip(1),
                '#' => break,
                ';' | '|' | '(' | ')' | '\n' => {
                    self.skip(1);
                    self.end_command();
                }
                '&' if self.rest.starts_with("&>") => self.redirect(),
                '&' => {
                    self.skip(1);
                    self.end_command();
                }
                '<' | '>' => self.redirect(),
                _ => self.word(),
            }
        }
        self.end_command();
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn end_command(&mut self) {
        self.redirected = false;
        if !self.words.is_empty() {
            self.line.commands.push(std::mem::take(&mut self.words));
        }
    }

    /// `>`, `>>`, `2>&1`, `&>`: the word behind it is no argument.
    fn redirect(&mut self) {
        let operator = self.rest.bytes().take_while(|byte| matches!(byte, b'<' | b'>' | b'&' | b'|')).count();
        self.skip(operator);
        self.redirected = true;
    }

    fn word(&mut self) {
        let mut word = String::new();
        while let Some(c) = self.rest.chars().next() {
            match c {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '(' | ')' => break,
                // The digit before it is the descriptor's number.
                '<' | '>' if word.bytes().all(|byte| byte.is_ascii_digit()) => {
                    word.clear();
                    self.redirect();
                    return;
                }
                '<' | '>' => break,
                '\\' => {
                    self.skip(1);
                    word.extend(self.take());
                }
                '\'' => {
                    self.skip(1);
                    word.push_str(self.until('\''));
                }
                '"' => self.double_quoted(&mut word),
                '`' => {
                    self.skip(1);
                    word.push_str(self.until('`'));
                }
                '$' if self.rest.starts_with("$(") => self.substitution(&mut word),
                _ => word.extend(self.take()),
            }
        }
        if !std::mem::take(&mut self.redirected) {
            self.words.push(word);
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.skip(c.len_utf8());
        Some(c)
    }

    /// The text up to a quote, which is passed.
    fn until(&mut self, quote: char) -> &'a str {
        match self.rest.split_once(quote) {
            Some((inside, rest)) => {
                self.rest = rest;
                inside
            }
            None => {
                self.line.is_open = true;
                std::mem::take(&mut self.rest)
            }
        }
    }

    fn double_quoted(&mut self, word: &mut String) {
        self.skip(1);
        loop {
            match self.rest.chars().next() {
                None => {
                    self.line.is_open = true;
                    return;
                }
                Some('"') => return self.skip(1),
                Some('\\') => {
                    self.skip(1);
                    word.extend(self.take());
                }
                Some('$') if self.rest.starts_with("$(") => self.substitution(word),
                Some(_) => word.extend(self.take()),
            }
        }
    }

    /// `$(...)`, with all that is nested in it.
    fn substitution(&mut self, word: &mut String) {
        let mut depth = 0_u32;
        while let Some(c) = self.take() {
            word.push(c);
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => return,
                ')' => depth -= 1,
                '\'' => word.push_str(self.until('\'')),
                '\\' => word.extend(self.take()),
                _ => {}
            }
        }
        self.line.is_open = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str) -> Vec<String> {
        cut(text).commands.iter().map(|words| words.join("|")).collect()
    }

    #[test]
    fn a_line_is_cut_at_operators_and_its_redirections_are_left_out() {
        assert_eq!(
            commands("cd /srv && ./run --all >>/var/log/x 2>&1; echo done"),
            ["cd|/srv", "./run|--all", "echo|done"]
        );
        assert_eq!(commands("( a b | c ) &>/dev/null & d <in"), ["a|b", "c", "d"]);
        assert_eq!(commands("a # the rest"), ["a"]);
        assert_eq!(commands("a b#c"), ["a|b#c"]);
    }

    #[test]
    fn quotes_and_substitutions_keep_a_word_together() {
        assert_eq!(commands(r#"sh -c 'a; b' "c d" e\ f"#), ["sh|-c|a; b|c d|e f"]);
        assert_eq!(commands("tar czf b-$(date +%F | tr a-z '()').tgz x"), ["tar|czf|b-$(date +%F | tr a-z '()).tgz|x"]);
        assert_eq!(commands("echo \"$(a \"b c\")\""), ["echo|$(a \"b c\")"]);
        assert_eq!(commands("echo `a b`"), ["echo|a b"]);
    }

    #[test]
    fn a_line_that_was_cut_short_is_open() {
        for text in ["tar czf b-$(date +", "echo `date +", "echo \"x", "echo 'x", "echo \"$(a"] {
            assert!(cut(text).is_open, "{text}");
        }
        for text in ["echo \"it's\"", "echo '\"'", "echo $(a $(b))", "echo \\\"", ""] {
            assert!(!cut(text).is_open, "{text}");
        }
    }
}
