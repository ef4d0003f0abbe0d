use std::io;

use tokio::net::unix::pipe;

use super::losses::Amount;

/// The longest line that is passed on in one piece, in bytes as they were written.
pub(super) const LONGEST_LINE: usize = 16 * 1024;

/// How much is read at once.
const PIECE: usize = 16 * 1024;

/// One stream's bytes on their way, cut into blocks. It holds back a line that is not whole yet, and
/// takes no memory before there is something to hold.
#[derive(Debug, Default)]
pub(in crate::run) struct Buffer {
    bytes: Vec<u8>,
    /// How many of them have been given away.
    taken: usize,
}

/// Some whole lines of one stream; the last may be without its end, if it is too long or the stream's last.
#[derive(Clone, Copy, Debug)]
pub(in crate::run) struct Block<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether the stream ends here.
    is_last: bool,
}

/// One line, without its line feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) bytes: &'a [u8],
    /// Whether it is too long, and goes on in the next one.
    pub(super) is_cut: bool,
    /// What it counts for, with its line feed.
    pub(super) amount: Amount,
}

impl Buffer {
    /// Reads what is there; waits for something. 0: the end.
    ///
    /// # Errors
    /// When the pipe can't be read: nothing more can be expected of it.
    ///
    /// # Cancel safety
    /// Safe: nothing that was read is lost.
    pub(in crate::run) async fn fill(&mut self, pipe: &pipe::Receiver) -> io::Result<usize> {
        loop {
            pipe.readable().await?;
            self.bytes.drain(..std::mem::take(&mut self.taken));
            self.bytes.reserve_exact(PIECE);
            match pipe.try_read_buf(&mut self.bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                answer => return answer,
            }
        }
    }

    /// What is whole of what was read, and at the end of the stream all of it. It counts as taken.
    pub(in crate::run) fn take(&mut self, is_last: bool) -> Block<'_> {
        let left = &self.bytes[self.taken..];
        let size = if is_last { left.len() } else { whole(left) };
        let from = self.taken;
        self.taken += size;
        Block { bytes: &self.bytes[from..self.taken], is_last }
    }
}

impl<'a> Block<'a> {
    /// Its lines, each of at most [`LONGEST_LINE`].
    pub(super) fn lines(self) -> impl Iterator<Item = Line<'a>> {
        let Self { bytes: mut left, is_last } = self;
        std::iter::from_fn(move || {
            let first = left.get(..=LONGEST_LINE).unwrap_or(left);
            let (size, end) = match first.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at, 1),
                None if left.is_empty() => return None,
                None if left.len() > LONGEST_LINE => (cut(left), 0),
                None => (left.len(), 0),
            };
            let (line, rest) = left.split_at(size);
            left = &rest[end..];
            let is_cut = end == 0 && !(is_last && left.is_empty());
            let amount = Amount { lines: u64::from(!is_cut), bytes: (size + end) as u64 };
            Some(Line { bytes: line, is_cut, amount })
        })
    }

    /// What its lines count for together.
    pub(super) fn amount(self) -> Amount {
        let whole = Amount::of(self.bytes);
        let is_open = self.is_last && self.bytes.last().is_some_and(|byte| *byte != b'\n');
        Amount { lines: whole.lines + u64::from(is_open), ..whole }
    }
}

#[cfg(test)]
impl<'a> Block<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, is_last: true }
    }
}

/// How many bytes are whole lines, or pieces of one that is too long.
fn whole(bytes: &[u8]) -> usize {
    let mut end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    while bytes.len() - end > LONGEST_LINE {
        end += cut(&bytes[end..]);
    }
    end
}

/// Where a line that is too long is cut: before a character of UTF-8 that would not be whole.
fn cut(line: &[u8]) -> usize {
    let is_inner = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    let first = (LONGEST_LINE - 3..=LONGEST_LINE).rev().find(|at| !is_inner(line[*at]));
    // Without a first byte that near it is no UTF-8, and may be cut anywhere.
    first.filter(|at| line[*at] >= 0b1100_0000).unwrap_or(LONGEST_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a buffer in pieces, and gives the lines with whether they are cut.
    fn lines(pieces: &[&[u8]]) -> Vec<(Vec<u8>, bool)> {
        let mut buffer = Buffer::default();
        let mut found = Vec::new();
        let mut amount = Amount::default();
        for (n, piece) in pieces.iter().enumerate() {
            buffer.bytes.drain(..std::mem::take(&mut buffer.taken));
            buffer.bytes.extend_from_slice(piece);
            let block = buffer.take(n + 1 == pieces.len());
            let mut left = block.amount();
            for line in block.lines() {
                assert!(line.bytes.len() <= LONGEST_LINE);
                left.take_off(line.amount);
                amount.add(line.amount);
                found.push((line.bytes.to_vec(), line.is_cut));
            }
            assert_eq!(left, Amount::default(), "a block counts for as much as its lines");
            assert!(buffer.bytes.len() - buffer.taken <= LONGEST_LINE, "memory is bounded");
        }
        assert_eq!(amount.bytes, pieces.concat().len() as u64, "each byte counts");
        found
    }

    #[test]
    fn lines_are_found_across_pieces_and_the_last_one_is_kept() {
        let found = lines(&[b"one\ntw", b"o\n\nre", b"st"]);
        let expected = ["one", "two", "", "rest"].map(|line| (line.as_bytes().to_vec(), false));
        assert_eq!(found, expected);
        assert_eq!(lines(&[b"", b"whole\n", b""]), [(b"whole".to_vec(), false)]);
    }

    #[test]
    fn a_line_without_end_is_cut_and_said_so() {
        let long = vec![b'x'; 3 * LONGEST_LINE + 1];
        let expected = [(LONGEST_LINE, true), (LONGEST_LINE, true), (LONGEST_LINE, true), (1, false)];
        for piece in [1_000, LONGEST_LINE, LONGEST_LINE + 1, long.len()] {
            let found = lines(&long.chunks(piece).collect::<Vec<_>>());
            assert_eq!(found.iter().map(|(line, cut)| (line.len(), *cut)).collect::<Vec<_>>(), expected, "{piece}");
        }
    }

    #[test]
    fn a_line_of_just_the_longest_length_is_whole() {
        let line = [vec![b'x'; LONGEST_LINE], b"\nnext\n".to_vec()].concat();
        for pieces in [vec![line.as_slice()], vec![&line[..LONGEST_LINE], &line[LONGEST_LINE..]]] {
            let found = lines(&pieces);
            assert_eq!(
                found.iter().map(|(line, cut)| (line.len(), *cut)).collect::<Vec<_>>(),
                [(LONGEST_LINE, false), (4, false)]
            );
        }
    }

    #[test]
    fn a_cut_never_parts_the_bytes_of_a_character() {
        for character in ["é", "€", "🦀"] {
            for shift in 0..4 {
                let text = format!("{}{}", "x".repeat(shift), character.repeat(2 * LONGEST_LINE / character.len()));
                for piece in [997, LONGEST_LINE, 1 << 20] {
                    let found = lines(&text.as_bytes().chunks(piece).collect::<Vec<_>>());
                    let parts: Vec<_> = found.iter().map(|(line, _)| str::from_utf8(line).unwrap()).collect();
                    assert_eq!(parts.concat(), text);
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_no_utf_8_are_cut_anywhere() {
        for byte in [0x80, 0xbf, 0xc3, 0xff] {
            let found = lines(&[&vec![byte; 2 * LONGEST_LINE]]);
            assert!(found.iter().map(|(line, _)| line.len()).sum::<usize>() == 2 * LONGEST_LINE && found.len() <= 3);
        }
    }
}
