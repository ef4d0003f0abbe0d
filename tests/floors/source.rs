//! One source file as the paths that it mentions.

use std::iter::Peekable;
use std::str::Chars;

/// A file: where it stands in the house, and every path in it.
#[derive(Debug)]
pub struct Source {
    /// The module that the file is; empty for `lib.rs` and `main.rs`.
    pub module: Vec<String>,
    /// Every path, each branch of a grouped import for itself, in order.
    pub mentions: Vec<Mention>,
}

/// A path as it is written, or the word `unsafe`.
#[derive(Debug)]
pub struct Mention {
    /// Its parts.
    pub path: Vec<String>,
    /// The room that it leads to, if it begins with `crate` or leaves the module by `super`.
    pub room: Option<String>,
    /// Whether its first part is the name of a crate or of something imported.
    pub is_foreign: bool,
    /// Where it begins.
    pub line: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    /// `::`
    Of,
    Sign(char),
}

impl Source {
    /// Reads a file, given its path under `src`.
    pub fn read(name: &str, text: &str) -> Self {
        let module = module_of(name);
        let tokens = tokens(text);
        let mut source = Self { module, mentions: Vec::new() };
        let mut reader = Reader { tokens: &tokens, at: 0, inner: Vec::new(), depth: 0 };
        while reader.at < tokens.len() {
            reader.step(&mut source);
        }
        source
    }

    /// The room that the file belongs to; `None` for `lib.rs` and `main.rs`.
    pub fn room(&self) -> Option<&str> {
        self.module.first().map(String::as_str)
    }
}

/// `lock/token.rs` is `lock::token`, `lock/mod.rs` is `lock`.
fn module_of(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    let is_top = parts.len() == 1 && ["lib", "main"].contains(&parts[0].as_str());
    if is_top || parts.last().is_some_and(|last| last == "mod") {
        parts.pop();
    }
    parts
}

/// Walks the tokens and keeps count of the inline modules that it is in.
struct Reader<'a> {
    tokens: &'a [(Token, usize)],
    at: usize,
    /// Inline modules, each with the depth of braces in which it stands.
    inner: Vec<(String, usize)>,
    depth: usize,
}

impl Reader<'_> {
    fn step(&mut self, source: &mut Source) {
        let line = self.tokens[self.at].1;
        match self.token(0).cloned() {
            Some(Token::Word(word)) if word == "use" => {
                self.at += 1;
                let mut paths = Vec::new();
                self.tree(&[], &mut paths);
                source.mentions.extend(paths.into_iter().map(|(path, line)| self.mention(&source.module, path, line)));
            }
            Some(Token::Word(word)) if word == "mod" && self.token(2) == Some(&Token::Sign('{')) => {
                if let Some(Token::Word(name)) = self.token(1) {
                    self.inner.push((name.clone(), self.depth));
                }
                self.at += 2;
            }
            Some(Token::Word(_)) => {
                let path = self.path();
                if path.len() > 1 || path == ["unsafe"] {
                    source.mentions.push(self.mention(&source.module, path, line));
                }
            }
            Some(Token::Sign('{')) => {
                self.depth += 1;
                self.at += 1;
            }
            Some(Token::Sign('}')) => {
                self.depth = self.depth.saturating_sub(1);
                self.inner.pop_if(|(_, depth)| *depth == self.depth);
                self.at += 1;
            }
            _ => self.at += 1,
        }
    }

    /// `a::b::c` in code; generic arguments end it and are read for themselves.
    fn path(&mut self) -> Vec<String> {
        let mut parts = Vec::new();
        while let Some(Token::Word(word)) = self.token(0) {
            parts.push(word.clone());
            self.at += 1;
            if self.token(0) != Some(&Token::Of) || !matches!(self.token(1), Some(Token::Word(_))) {
                break;
            }
            self.at += 1;
        }
        parts
    }

    /// What stands behind `use`, or behind `::` or `,` in a group: every branch with `before` in front.
    fn tree(&mut self, before: &[String], paths: &mut Vec<(Vec<String>, usize)>) {
        let mut path = before.to_vec();
        let line = self.tokens.get(self.at).map_or(0, |(_, line)| *line);
        loop {
            match self.token(0).cloned() {
                Some(Token::Word(word)) if word == "as" => self.at += 2,
                Some(Token::Word(word)) => {
                    path.push(word);
                    self.at += 1;
                }
                Some(Token::Sign('*')) => {
                    path.push("*".to_owned());
                    self.at += 1;
                }
                Some(Token::Of) => self.at += 1,
                Some(Token::Sign('{')) => return self.group(&path, paths),
                _ => return paths.push((path, line)),
            }
        }
    }

    fn group(&mut self, before: &[String], paths: &mut Vec<(Vec<String>, usize)>) {
        self.at += 1;
        while let Some(token) = self.token(0) {
            match token {
                Token::Sign('}') => {
                    self.at += 1;
                    return;
                }
                Token::Sign(',') => self.at += 1,
                _ => self.tree(before, paths),
            }
        }
    }

    fn token(&self, ahead: usize) -> Option<&Token> {
        self.tokens.get(self.at + ahead).map(|(token, _)| token)
    }

    fn mention(&self, module: &[String], path: Vec<String>, line: usize) -> Mention {
        let first = path.first().map(String::as_str).unwrap_or_default();
        let room = match first {
            "crate" => path.get(1).cloned(),
            "super" => self.above(module, &path),
            _ => None,
        };
        Mention { room, is_foreign: !["crate", "super", "self", "Self"].contains(&first), path, line }
    }

    /// The room that `super::..` leads to: our own, or the first part after the top was reached.
    fn above(&self, module: &[String], path: &[String]) -> Option<String> {
        let steps = path.iter().take_while(|part| *part == "super").count();
        let here: Vec<&String> = module.iter().chain(self.inner.iter().map(|(name, _)| name)).collect();
        let left = here.len().checked_sub(steps)?;
        here[..left].first().copied().or(path.get(steps)).cloned()
    }
}

/// The words and signs of a source, each with its line; comments and literals are left out.
fn tokens(text: &str) -> Vec<(Token, usize)> {
    let mut found = Vec::new();
    let mut rest = Rest { chars: text.chars().peekable(), line: 1 };
    while let Some(next) = rest.take() {
        let line = rest.line;
        match next {
            '/' if rest.peek() == Some('/') => while rest.take().is_some_and(|c| c != '\n') {},
            '/' if rest.peek() == Some('*') => rest.skip_comment(),
            '"' => rest.skip_string(),
            '\'' => rest.skip_character_or_lifetime(),
            ':' if rest.peek() == Some(':') => {
                rest.take();
                found.push((Token::Of, line));
            }
            c if c.is_alphanumeric() || c == '_' => {
                let word = rest.word(c);
                // r"..", br#".."#: the word before a literal belongs to it; r#type is a name.
                let is_raw = word.ends_with('r') && ["r", "br", "cr"].contains(&word.as_str());
                if !(is_raw && rest.skip_raw_string()) {
                    found.push((Token::Word(word), line));
                }
            }
            c if c.is_whitespace() => {}
            c => found.push((Token::Sign(c), line)),
        }
    }
    found
}

struct Rest<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

impl Rest<'_> {
    fn take(&mut self) -> Option<char> {
        let next = self.chars.next();
        if next == Some('\n') {
            self.line += 1;
        }
        next
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().copied()
    }

    fn word(&mut self, first: char) -> String {
        let mut word = String::from(first);
        while let Some(c) = self.peek().filter(|c| c.is_alphanumeric() || *c == '_') {
            word.push(c);
            self.take();
        }
        word
    }

    /// Behind `/`, before `*`; comments nest.
    fn skip_comment(&mut self) {
        let mut depth = 0;
        let mut before = '/';
        while let Some(c) = self.take() {
            match (before, c) {
                ('/', '*') => depth += 1,
                ('*', '/') => depth -= 1,
                _ => {
                    before = c;
                    continue;
                }
            }
            if depth == 0 {
                return;
            }
            before = ' ';
        }
    }

    /// Behind the opening quote.
    fn skip_string(&mut self) {
        while let Some(c) = self.take() {
            match c {
                '\\' => {
                    self.take();
                }
                '"' => return,
                _ => {}
            }
        }
    }

    /// Behind `r`: whether a raw string stood there, which is then gone.
    fn skip_raw_string(&mut self) -> bool {
        let mut ahead = self.chars.clone();
        let mut hashes = 0;
        while ahead.next_if_eq(&'#').is_some() {
            hashes += 1;
        }
        if ahead.next() != Some('"') {
            return false;
        }
        for _ in 0..=hashes {
            self.take();
        }
        let mut closing: Option<usize> = None;
        while let Some(c) = self.take() {
            closing = match (c, closing) {
                ('"', _) => Some(0),
                ('#', Some(seen)) => Some(seen + 1),
                _ => None,
            };
            if closing == Some(hashes) {
                break;
            }
        }
        true
    }

    /// Behind `'`: `'a'`, `'\''`, or the lifetime `'a`.
    fn skip_character_or_lifetime(&mut self) {
        match self.take() {
            Some('\\') => {
                self.take();
                while self.take().is_some_and(|c| c != '\'') {}
            }
            Some(_) if self.peek() == Some('\'') => {
                self.take();
            }
            Some(c) if c.is_alphanumeric() || c == '_' => drop(self.word(c)),
            _ => {}
        }
    }
}
