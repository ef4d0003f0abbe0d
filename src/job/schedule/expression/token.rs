use super::super::error::InvalidSchedule;

/// The longest expression, in bytes.
pub const MAX_BYTES: usize = 512;

/// crontab(5)'s shorthands and what they stand for.
const SHORTHANDS: [(&str, [&str; 5]); 7] = [
    ("@hourly", ["0", "*", "*", "*", "*"]),
    ("@daily", ["0", "0", "*", "*", "*"]),
    ("@midnight", ["0", "0", "*", "*", "*"]),
    ("@weekly", ["0", "0", "*", "*", "0"]),
    ("@monthly", ["0", "0", "1", "*", "*"]),
    ("@yearly", ["0", "0", "1", "1", "*"]),
    ("@annually", ["0", "0", "1", "1", "*"]),
];

/// The fields of an expression as typed; what was not typed is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tokens<'a> {
    /// Only with six or seven fields.
    pub second: Option<&'a str>,
    /// Minute, hour, day of month, month, day of week.
    pub crontab: [&'a str; 5],
    /// Only with seven fields.
    pub year: Option<&'a str>,
}

/// Cuts an expression at its spaces and tabs, and refuses what can't be one.
pub fn tokenise(expression: &str) -> Result<Tokens<'_>, InvalidSchedule> {
    if expression.len() > MAX_BYTES {
        return Err(InvalidSchedule::TooLong(expression.len()));
    }
    let alien = |c: &char| !c.is_ascii_graphic() && !matches!(c, ' ' | '\t');
    if let Some((before, character)) = expression.chars().enumerate().find(|(_, c)| alien(c)) {
        return Err(InvalidSchedule::Character { at: before + 1, character });
    }
    let tokens: Vec<&str> = expression.split([' ', '\t']).filter(|token| !token.is_empty()).collect();
    if let Some(shorthand) = tokens.iter().find(|token| token.starts_with('@')) {
        let remedy = "a shorthand stands alone; remove the other fields, or write them all as numbers";
        return match tokens.len() {
            1 => expand(shorthand),
            // `@every 5m` is two words in the libraries that know it.
            2 if shorthand.eq_ignore_ascii_case("@every") => expand(shorthand),
            _ => Err(InvalidSchedule::Shorthand { token: (*shorthand).to_owned(), remedy }),
        };
    }
    if let Some((token, remedy)) = tokens.iter().find_map(|token| Some((token, foreign(token)?))) {
        return Err(InvalidSchedule::Foreign { token: (*token).to_owned(), remedy });
    }
    match tokens[..] {
        [] => Err(InvalidSchedule::Blank),
        [a, b, c, d, e] => Ok(Tokens { second: None, crontab: [a, b, c, d, e], year: None }),
        [s, a, b, c, d, e] => Ok(Tokens { second: Some(s), crontab: [a, b, c, d, e], year: None }),
        [s, a, b, c, d, e, y] => Ok(Tokens { second: Some(s), crontab: [a, b, c, d, e], year: Some(y) }),
        _ => Err(InvalidSchedule::FieldCount(tokens.len())),
    }
}

fn expand(shorthand: &str) -> Result<Tokens<'static>, InvalidSchedule> {
    if let Some((_, crontab)) = SHORTHANDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(shorthand)) {
        return Ok(Tokens { second: None, crontab: *crontab, year: None });
    }
    let remedy = if shorthand.eq_ignore_ascii_case("@every") {
        "this is no crontab expression; write e.g. \"*/5 * * * *\""
    } else if shorthand.eq_ignore_ascii_case("@reboot") {
        "a boot is no instant that several hosts share; let the host's init system start it"
    } else {
        "no such shorthand; allowed are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually"
    };
    Err(InvalidSchedule::Shorthand { token: shorthand.to_owned(), remedy })
}

/// What a line of a crontab has around its expression, with the remedy.
fn foreign(token: &str) -> Option<&'static str> {
    if token.contains('=') {
        Some("an expression holds no variables; a time zone has its own key, \"timezone\"")
    } else if token.contains(['"', '\'']) {
        Some("remove the inner quotes")
    } else if token.starts_with('#') {
        Some("an expression holds no comment; move it to the description")
    } else if token.strip_prefix('/').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())) {
        Some("an expression holds no command; a command has its own key")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(expression: &str) -> String {
        tokenise(expression).unwrap_err().to_string()
    }

    #[test]
    fn five_six_and_seven_fields_are_told_apart_by_their_number() {
        let five = tokenise(" 1\t2  3 4 5 ").unwrap();
        assert_eq!(five, Tokens { second: None, crontab: ["1", "2", "3", "4", "5"], year: None });
        assert_eq!(tokenise("0 1 2 3 4 5").unwrap(), Tokens { second: Some("0"), ..five });
        assert_eq!(tokenise("0 1 2 3 4 5 6").unwrap(), Tokens { second: Some("0"), year: Some("6"), ..five });
    }

    #[test]
    fn another_number_of_fields_is_refused_with_the_layouts() {
        assert!(
            refusal("* * * *").starts_with("the expression has 4 fields, with spaces between them there must be 5")
        );
        assert!(refusal("*****").starts_with("the expression has 1 field, "));
        assert!(refusal(" \t").starts_with("the expression is blank"));
    }

    #[test]
    fn shorthands_are_known_in_any_case_and_stand_alone() {
        assert_eq!(tokenise("@Daily").unwrap().crontab, ["0", "0", "*", "*", "*"]);
        assert!(refusal("@daily * * * *").contains("stands alone"));
        assert!(refusal("@every 5m").contains("write e.g. \"*/5 * * * *\""));
        assert!(refusal("@reboot").contains("init system"));
        assert!(refusal("@fortnightly").contains("@annually"));
    }

    #[test]
    fn what_only_looks_like_ascii_is_named_by_its_code() {
        assert!(refusal("0\u{a0}0 * * *").starts_with("character 2 is U+00A0"));
        assert!(refusal("* * * * *\n").starts_with("character 10 is U+000A"));
    }

    #[test]
    fn the_length_is_bounded_before_anything_is_read() {
        let long = format!("{} * * * *", "1,".repeat(300));
        assert!(refusal(&long).contains("608 bytes"));
    }

    #[test]
    fn what_surrounds_an_expression_in_a_crontab_has_its_own_remedy() {
        assert!(refusal("TZ=UTC 0 0 * * *").contains("\"timezone\""));
        assert!(refusal("\"* * * * *\"").contains("quotes"));
        assert!(refusal("0 0 * * * # midnight").contains("comment"));
        assert!(refusal("0 0 * * * /usr/bin/true").contains("command"));
    }
}
