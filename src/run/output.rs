use std::collections::VecDeque;

/// The longest line that is logged in one piece.
const LONGEST_LINE: usize = 16 * 1024;

/// How much of the end of the output is kept for the run's row.
const TAIL: usize = 8 * 1024;

/// The last lines of a run's output, over both streams in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Tail {
    lines: VecDeque<String>,
    bytes: usize,
}

/// One line, fit to be shown: UTF-8 with replacement characters for what is none, control
/// characters escaped.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// Whether it was longer than 16 KiB and goes on in the next one.
    pub(super) cut: bool,
}

/// Cuts a stream of bytes into lines, in bounded memory.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pending: Vec<u8>,
}

impl Tail {
    pub(super) fn push(&mut self, line: &str) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line.to_owned());
        while self.bytes > TAIL && self.lines.len() > 1 {
            self.bytes -= self.lines.pop_front().map_or(0, |line| line.len() + 1);
        }
    }

    /// The lines; `None` if there was no output.
    pub(super) fn text(&self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        Some(self.lines.iter().map(|line| format!("{line}\n")).collect())
    }
}

impl Lines {
    /// Takes bytes in and gives the lines that they complete.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        while !bytes.is_empty() {
            let room = LONGEST_LINE - self.pending.len();
            let window = &bytes[..bytes.len().min(room)];
            if let Some(end) = window.iter().position(|byte| *byte == b'\n') {
                self.pending.extend_from_slice(&window[..end]);
                bytes = &bytes[end + 1..];
                lines.push(self.take(false));
            } else {
                self.pending.extend_from_slice(window);
                bytes = &bytes[window.len()..];
                if self.pending.len() == LONGEST_LINE {
                    lines.push(self.take(true));
                }
            }
        }
        lines
    }

    /// The last line, if the stream ended without a line feed.
    pub(super) fn finish(&mut self) -> Option<Line> {
        (!self.pending.is_empty()).then(|| self.take(false))
    }

    fn take(&mut self, cut: bool) -> Line {
        let text = printable(&String::from_utf8_lossy(&self.pending));
        self.pending.clear();
        Line { text, cut }
    }
}

/// Escapes what could move the cursor or forge a line; the carriage return of CRLF is dropped.
fn printable(text: &str) -> String {
    let text = text.strip_suffix('\r').unwrap_or(text);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() && c != '\t' {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn lines_are_found_across_pieces_and_the_last_one_is_kept() {
        let mut lines = Lines::default();
        assert_eq!(texts(&lines.feed(b"one\ntw")), ["one"]);
        assert_eq!(texts(&lines.feed(b"o\n\nrest")), ["two", ""]);
        assert_eq!(lines.finish().map(|line| line.text), Some("rest".to_owned()));
        assert_eq!(lines.finish(), None);
    }

    #[test]
    fn a_line_without_end_is_cut_and_said_so() {
        let mut lines = Lines::default();
        let found = lines.feed(&vec![b'x'; 3 * LONGEST_LINE + 1]);
        assert_eq!(found.len(), 3);
        assert!(found.iter().all(|line| line.cut && line.text.len() == LONGEST_LINE));
        assert!(lines.pending.len() == 1);
    }

    #[test]
    fn odd_bytes_and_control_characters_do_no_harm() {
        let mut lines = Lines::default();
        let found = lines.feed(b"\xe2\x28\xa1 \x1b[2Jgone\r\n");
        assert_eq!(texts(&found), ["\u{fffd}(\u{fffd} \\u{1b}[2Jgone"]);
    }

    #[test]
    fn the_tail_is_bounded_and_holds_the_end() {
        let mut tail = Tail::default();
        assert_eq!(tail.text(), None);
        for n in 0..10_000 {
            tail.push(&format!("line {n}"));
        }
        let text = tail.text().expect("there was output");
        assert!(text.len() <= TAIL);
        assert!(text.ends_with("line 9998\nline 9999\n"));
    }
}
