use std::borrow::Cow;

/// A line as it may be shown: UTF-8 with replacement characters for what is none; what could move the
/// cursor, forge a line or turn the direction of writing is escaped; the carriage return of CRLF is dropped.
pub(super) fn printable(line: &[u8]) -> Cow<'_, str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let text = String::from_utf8_lossy(line);
    // Nearly all lines are such ones, and a job may write many.
    if line.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) || !text.contains(is_harmful) {
        return text;
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_harmful(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// Control characters (C0 but the tab, DEL, C1), the separators that some viewers break lines at, and
/// what overrides the direction of writing.
fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_bytes_and_control_characters_do_no_harm() {
        for (line, shown) in [
            (b"\xe2\x28\xa1 \x1b[2Jgone\r".as_slice(), "\u{fffd}(\u{fffd} \\u{1b}[2Jgone"),
            (b"a\tb \0\x07\x7f", "a\tb \\u{0}\\u{7}\\u{7f}"),
            (b"a\rb", "a\\rb"),
            ("\u{9b}31m \u{85} caf\u{e9}".as_bytes(), "\\u{9b}31m \\u{85} caf\u{e9}"),
            ("\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}".as_bytes(), "\\u{202a}\\u{202e}\\u{2066}\\u{2069}\\u{2028}"),
            ("日本語 🦀 \u{200d}".as_bytes(), "日本語 🦀 \u{200d}"),
            (b"", ""),
        ] {
            assert_eq!(printable(line), shown);
        }
    }
}
