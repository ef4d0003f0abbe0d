use super::lines::Block;
use super::printable::printable;

/// How much of the end of the output is kept for the run's row.
const TAIL: usize = 8 * 1024;

/// The end of a run's output, over both streams in the order in which it came. Kept as it was written:
/// it is made fit to be shown once, at the end.
#[derive(Debug, Default)]
pub(in crate::run) struct Tail {
    bytes: Vec<u8>,
    /// Whether the first byte stands within a line.
    starts_in_line: bool,
}

impl Tail {
    pub(in crate::run) fn push(&mut self, block: Block<'_>) {
        let bytes = block.bytes;
        let from = bytes.len().saturating_sub(TAIL);
        if from > 0 {
            self.bytes.clear();
            self.starts_in_line = bytes[from - 1] != b'\n';
        }
        self.bytes.extend_from_slice(&bytes[from..]);
        // The next block may be of the other stream.
        if self.bytes.last().is_some_and(|byte| *byte != b'\n') {
            self.bytes.push(b'\n');
        }
        if self.bytes.len() > 4 * TAIL {
            let surplus = self.bytes.len() - TAIL;
            self.starts_in_line = self.bytes[surplus - 1] != b'\n';
            self.bytes.drain(..surplus);
        }
    }

    /// The last lines, each with a line feed, of at most 8 KiB; of a longer line its end. `None` if there
    /// was no output.
    pub(in crate::run) fn text(&self) -> Option<String> {
        let text: String = self
            .bytes
            .split_inclusive(|byte| *byte == b'\n')
            .fold(String::new(), |text, line| text + &printable(line.strip_suffix(b"\n").unwrap_or(line)) + "\n");
        let from = text.ceil_char_boundary(text.len().saturating_sub(TAIL));
        let starts_in_line = if from == 0 { self.starts_in_line } else { !text[..from].ends_with('\n') };
        let text = &text[from..];
        let next_line = text.find('\n').map_or(text.len(), |at| at + 1);
        let text = if starts_in_line && next_line < text.len() { &text[next_line..] } else { text };
        (!text.is_empty()).then(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(pieces: impl IntoIterator<Item = Vec<u8>>) -> Option<String> {
        let mut tail = Tail::default();
        for piece in pieces {
            tail.push(Block::of(&piece));
            assert!(tail.bytes.len() <= 4 * TAIL + 1);
        }
        tail.text()
    }

    #[test]
    fn the_tail_is_bounded_and_holds_the_end() {
        assert_eq!(tail_of([]), None);
        assert_eq!(tail_of([b"one\n".to_vec(), b"\n".to_vec(), b"two".to_vec()]).as_deref(), Some("one\n\ntwo\n"));
        let line = |n: u32| format!("line {n}\n");
        for at_once in [1, 100, 10_000] {
            let all: Vec<String> = (0..10_000).map(line).collect();
            let text = tail_of(all.chunks(at_once).map(|lines| lines.concat().into_bytes())).unwrap();
            assert!((TAIL - 9..=TAIL).contains(&text.len()), "{}", text.len());
            assert!(text.starts_with("line ") && text.ends_with("line 9998\nline 9999\n"), "{text}");
        }
    }

    #[test]
    fn of_a_line_that_is_too_long_the_tail_holds_the_end() {
        let text = tail_of([[b"short\n".to_vec(), vec![b'x'; 2 * TAIL], b" end\n".to_vec()].concat()]).unwrap();
        assert_eq!(text.len(), TAIL);
        assert!(text.starts_with("xx") && text.ends_with("x end\n"));
        let text = tail_of([format!("a{}", "🦀".repeat(TAIL)).into_bytes()]).unwrap();
        assert!((TAIL - 4..=TAIL).contains(&text.len()) && text.chars().all(|c| "🦀\n".contains(c)), "{text}");
        let text = tail_of([vec![0x1b; TAIL]]).unwrap();
        assert!(text.len() <= TAIL && text.ends_with("\\u{1b}\n"), "what is escaped is bounded too");
    }
}
