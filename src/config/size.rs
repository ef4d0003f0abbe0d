//! Sizes as people write them: `"64K"`, `"512M"`, `"2GiB"`.

/// Why a text is no size for a key.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum InvalidSize {
    /// It is no whole number with a unit.
    #[error("not a size: a whole number with K, M, G or T behind it")]
    Unreadable,
    /// `"512MB"`: 512,000,000 to some, 536,870,912 to others.
    #[error("the unit {0} means powers of 1000 to some; {1} and {1}iB are powers of 1024")]
    Decimal(String, char),
    /// `"512m"`: minutes elsewhere in the same file.
    #[error("units are capital letters: K, M, G or T")]
    SmallLetter,
    /// Below what the key allows.
    #[error("too small: at least {}", in_words(*.0))]
    TooSmall(u64),
    /// Beyond what the system can count.
    #[error("too large")]
    TooLarge,
}

/// The units with their bytes.
const UNITS: [(char, u64); 4] = [('K', 1 << 10), ('M', 1 << 20), ('G', 1 << 30), ('T', 1 << 40)];

/// Reads a number of bytes, at least `least`. Units are powers of 1024, with and without `iB`.
pub fn parse(text: &str, least: u64) -> Result<u64, InvalidSize> {
    let text = text.trim();
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    if number.is_empty() {
        return Err(InvalidSize::Unreadable);
    }
    let factor = factor(unit.trim_start())?;
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    // Limits and offsets of files are signed in some calls.
    let bytes = bytes.filter(|bytes| i64::try_from(*bytes).is_ok()).ok_or(InvalidSize::TooLarge)?;
    if bytes < least { Err(InvalidSize::TooSmall(least)) } else { Ok(bytes) }
}

fn factor(unit: &str) -> Result<u64, InvalidSize> {
    let mut letters = unit.chars();
    let first = letters.next().ok_or(InvalidSize::Unreadable)?;
    let known = UNITS.iter().find(|(letter, _)| *letter == first.to_ascii_uppercase());
    let (letter, factor) = *known.ok_or(InvalidSize::Unreadable)?;
    match letters.as_str() {
        "" | "iB" if first.is_ascii_uppercase() => Ok(factor),
        "B" => Err(InvalidSize::Decimal(unit.to_owned(), letter)),
        "" | "i" | "ib" | "b" | "iB" => Err(InvalidSize::SmallLetter),
        _ => Err(InvalidSize::Unreadable),
    }
}

/// As it would be typed; units that don't divide it are left out.
fn in_words(bytes: u64) -> String {
    let fitting = UNITS.iter().rev().find(|(_, factor)| bytes.is_multiple_of(*factor));
    fitting.map_or_else(|| format!("{bytes} bytes"), |(unit, factor)| format!("{}{unit}", bytes / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024() {
        for (text, bytes) in [("64K", 65_536), ("512M", 536_870_912), ("512MiB", 536_870_912), ("2 GiB", 2 << 30)] {
            assert_eq!(parse(text, 0), Ok(bytes), "{text}");
        }
        assert_eq!(parse("7T", 0), Ok(7 << 40));
        assert_eq!((in_words(10 << 20), in_words(1_000)), ("10M".to_owned(), "1000 bytes".to_owned()));
    }

    #[test]
    fn what_could_mean_two_things_is_refused() {
        assert_eq!(parse("512MB", 0), Err(InvalidSize::Decimal("MB".to_owned(), 'M')));
        assert_eq!(parse("512m", 0), Err(InvalidSize::SmallLetter));
        for text in ["", "M", "512", "-1M", "1.5G", "512 bytes", "512X", "0x10M", "1M2"] {
            assert_eq!(parse(text, 0), Err(InvalidSize::Unreadable), "{text}");
        }
    }

    #[test]
    fn bounds_hold() {
        assert_eq!(parse("1K", 1 << 20), Err(InvalidSize::TooSmall(1 << 20)));
        for text in ["8388608T", "99999999999999999999K", "20000000T"] {
            assert_eq!(parse(text, 0), Err(InvalidSize::TooLarge), "{text}");
        }
        assert!(parse("8388607T", 0).is_ok());
    }
}
