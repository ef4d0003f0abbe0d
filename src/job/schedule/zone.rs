use std::str::FromStr;

use chrono_tz::{TZ_VARIANTS, Tz};

/// Why a text can't name a time zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidZone {
    /// Nothing, or white space only.
    #[error("the time zone is blank; write an IANA name such as \"Europe/Berlin\", \"UTC\" or \"local\"")]
    Blank,
    /// `CET`, `EST5EDT`: several places share it, and it keeps half of the year only.
    #[error("time zone {name:?} is an abbreviation, which is ambiguous or ignores clock changes; write {hint}")]
    Abbreviation {
        /// The text.
        name: String,
        /// A place that may be meant.
        hint: &'static str,
    },
    /// `UTC+1`, `+01:00`: an offset is no zone.
    #[error("time zone {0:?} is an offset, which knows no clock changes; write a place such as \"Europe/Berlin\"")]
    Offset(String),
    /// Right but for its case.
    #[error("time zone {name:?} is unknown; write {right:?}, upper and lower case matter")]
    Case {
        /// The text.
        name: String,
        /// The name as the tz database has it.
        right: &'static str,
    },
    /// In no list, but near to a name.
    #[error("time zone {name:?} is unknown; did you mean {nearest:?}?")]
    Misspelt {
        /// The text.
        name: String,
        /// The nearest name.
        nearest: &'static str,
    },
    /// In no list.
    #[error("time zone {0:?} is unknown; write an IANA name such as \"Europe/Berlin\", \"UTC\" or \"local\"")]
    Unknown(String),
    /// This host doesn't say which zone it is in.
    #[error("time zone \"local\" can't be told on this host ({0}); write its IANA name")]
    NoLocal(String),
}

/// Abbreviations that people write, with the places that they most often mean.
///
/// Only a few are names in the tz database (`EST`, `CET`, `EST5EDT`), and those are the traps: a
/// job in `EST` is an hour off from March to November.
const ABBREVIATIONS: [(&[&str], &str); 24] = [
    (&["CET", "CEST", "MET", "MEST", "MEZ", "MESZ"], "a place such as \"Europe/Berlin\""),
    (&["EET", "EEST"], "a place such as \"Europe/Helsinki\""),
    (&["WET", "WEST"], "a place such as \"Europe/Lisbon\""),
    (&["GMT", "GMT0"], "\"UTC\", or \"Europe/London\" for British time"),
    (&["Z"], "\"UTC\""),
    (&["BST"], "a place such as \"Europe/London\""),
    (&["MSK", "MSD"], "a place such as \"Europe/Moscow\""),
    (&["EST", "EDT", "ET", "EST5EDT"], "a place such as \"America/New_York\""),
    (&["CST", "CDT", "CT", "CST6CDT"], "a place such as \"America/Chicago\" or \"Asia/Shanghai\""),
    (&["MST", "MDT", "MT", "MST7MDT"], "a place such as \"America/Denver\" or \"America/Phoenix\""),
    (&["PST", "PDT", "PT", "PST8PDT"], "a place such as \"America/Los_Angeles\""),
    (&["AKST", "AKDT"], "a place such as \"America/Anchorage\""),
    (&["HST", "HDT"], "a place such as \"Pacific/Honolulu\""),
    (&["AST", "ADT"], "a place such as \"America/Halifax\""),
    (&["NST", "NDT"], "a place such as \"America/St_Johns\""),
    (&["BRT", "BRST"], "a place such as \"America/Sao_Paulo\""),
    (&["IST", "IDT"], "a place such as \"Asia/Kolkata\", \"Asia/Jerusalem\" or \"Europe/Dublin\""),
    (&["JST"], "a place such as \"Asia/Tokyo\""),
    (&["KST"], "a place such as \"Asia/Seoul\""),
    (&["HKT"], "a place such as \"Asia/Hong_Kong\""),
    (&["SGT"], "a place such as \"Asia/Singapore\""),
    (&["AEST", "AEDT"], "a place such as \"Australia/Sydney\""),
    (&["NZST", "NZDT"], "a place such as \"Pacific/Auckland\""),
    (&["SAST", "CAT", "EAT", "WAT"], "a place such as \"Africa/Johannesburg\""),
];

/// Reads a time zone: an IANA name, `UTC`, or `local` for the zone that this host is in.
///
/// # Errors
/// [`InvalidZone`] with the name that was probably meant.
pub fn parse_zone(name: &str) -> Result<Tz, InvalidZone> {
    if name.trim().is_empty() {
        return Err(InvalidZone::Blank);
    }
    if name == "local" {
        return local_zone();
    }
    let listed = |(names, _): &&(&[&str], &str)| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    if let Some((_, hint)) = ABBREVIATIONS.iter().find(listed) {
        return Err(InvalidZone::Abbreviation { name: name.to_owned(), hint });
    }
    if is_offset(name) {
        return Err(InvalidZone::Offset(name.to_owned()));
    }
    Tz::from_str(name).map_err(|_| unknown(name))
}

fn local_zone() -> Result<Tz, InvalidZone> {
    let name = iana_time_zone::get_timezone().map_err(|error| InvalidZone::NoLocal(error.to_string()))?;
    Tz::from_str(&name).map_err(|_| InvalidZone::NoLocal(format!("it says {name:?}, which is unknown")))
}

/// `+01:00`, `UTC+1`, `GMT-5`, `EST5`, `CET-1CEST`; but `Etc/GMT+5` is a name.
fn is_offset(name: &str) -> bool {
    let rest = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let rest = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_digit())
}

fn unknown(name: &str) -> InvalidZone {
    let known = || TZ_VARIANTS.iter().map(|zone| zone.name()).chain(["local"]);
    let typed = name.to_owned();
    if let Some(right) = known().find(|known| known.eq_ignore_ascii_case(name)) {
        return InvalidZone::Case { name: typed, right };
    }
    let spelt = name.trim().replace(' ', "_").to_ascii_lowercase();
    // `Berlin` is nearer to Europe/Berlin than any distance of letters would say.
    let city = known().find(|known| known.to_ascii_lowercase().ends_with(&format!("/{spelt}")));
    // A name far longer than any zone's is near to none, and would take long to compare.
    let distance = |known: &str| strsim::damerau_levenshtein(&known.to_ascii_lowercase(), &spelt);
    let nearest = || known().filter(|_| spelt.len() <= 64).map(|known| (distance(known), known)).min();
    let near = || nearest().filter(|(distance, _)| *distance <= 1 + spelt.len() / 5).map(|(_, known)| known);
    match city.or_else(near) {
        Some(nearest) => InvalidZone::Misspelt { name: typed, nearest },
        None => InvalidZone::Unknown(typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str) -> String {
        parse_zone(name).unwrap_err().to_string()
    }

    #[test]
    fn iana_names_and_utc_are_read() {
        assert_eq!(parse_zone("Europe/Berlin"), Ok(Tz::Europe__Berlin));
        assert_eq!(parse_zone("America/Argentina/Buenos_Aires"), Ok(Tz::America__Argentina__Buenos_Aires));
        assert_eq!(parse_zone("UTC"), Ok(Tz::UTC));
        assert_eq!(parse_zone("Etc/GMT+5"), Ok(Tz::Etc__GMTPlus5));
    }

    #[test]
    fn local_is_the_zone_of_this_host_or_says_why_not() {
        match parse_zone("local") {
            Ok(zone) => assert_eq!(iana_time_zone::get_timezone().unwrap(), zone.name()),
            Err(error) => assert!(error.to_string().contains("write its IANA name")),
        }
    }

    #[test]
    fn abbreviations_are_refused_with_a_place_even_where_the_database_knows_them() {
        for (name, place) in [
            ("CET", "Europe/Berlin"),
            ("cest", "Europe/Berlin"),
            ("EST", "America/New_York"),
            ("EST5EDT", "America/New_York"),
            ("GMT", "UTC"),
            ("PST", "America/Los_Angeles"),
        ] {
            let text = refusal(name);
            assert!(text.contains("abbreviation") && text.contains(place), "{text}");
        }
    }

    #[test]
    fn offsets_are_refused() {
        for name in ["UTC+1", "GMT-5", "+01:00", "-0300", "EST5", "CET-1CEST"] {
            assert!(refusal(name).contains("is an offset"), "{name}");
        }
    }

    #[test]
    fn wrong_case_and_misspelt_names_are_refused_with_the_right_one() {
        assert!(refusal("europe/berlin").contains("write \"Europe/Berlin\""));
        assert!(refusal("utc").contains("write \"UTC\""));
        assert!(refusal("Local").contains("write \"local\""));
        assert!(refusal("Europe/Berlni").contains("did you mean \"Europe/Berlin\"?"));
        assert!(refusal("America/New York").contains("did you mean \"America/New_York\"?"));
        assert!(refusal("berlin").contains("did you mean \"Europe/Berlin\"?"));
        assert_eq!(
            refusal("Middle-earth/Shire"),
            "time zone \"Middle-earth/Shire\" is unknown; write an IANA name such as \"Europe/Berlin\", \"UTC\" or \"local\""
        );
        assert!(refusal(" ").contains("is blank"));
    }
}
