use std::fmt;
use std::path::{Path, PathBuf};

/// The shared database. `Debug` and `Display` never show a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A PostgreSQL server, for any number of hosts.
    Postgres(PostgresUrl),
    /// A SQLite file, for the daemons of one machine. A relative path starts at the current directory.
    Sqlite(PathBuf),
}

/// The URL of a PostgreSQL server; it may hold a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// Why a text is no database. The messages quote nothing of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidDatabaseUrl {
    /// Neither of the two databases.
    #[error("not a URL of PostgreSQL or SQLite")]
    Scheme,
    /// Nothing behind the scheme.
    #[error("names no database")]
    Empty,
    /// A space, a line feed, NUL.
    #[error("holds white space or control characters")]
    Space,
    /// Not a number where the port belongs: as a rule a password with a `/` or `#` in it.
    #[error("the port is not a number")]
    Port,
    /// SQLite in memory.
    #[error("a database in memory is not shared with anybody")]
    Memory,
    /// `?mode=...`.
    #[error("parameters of SQLite are set by cronlatch")]
    SqliteParameters,
}

impl InvalidDatabaseUrl {
    /// What to do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Scheme | Self::Empty => "write \"postgres://USER@HOST/DATABASE\" or \"sqlite:///PATH/TO/FILE.db\"",
            Self::Space => "remove them; in a password a space is written %20",
            Self::Port => "write HOST:PORT; in a password / is written %2F, # %23, ? %3F, : %3A and @ %40",
            Self::Memory => "name a file: \"sqlite:///PATH/TO/FILE.db\"",
            Self::SqliteParameters => "remove everything from the question mark on",
        }
    }
}

impl DatabaseUrl {
    /// Checks a URL.
    ///
    /// # Errors
    /// [`InvalidDatabaseUrl`] says what is wrong with it.
    pub fn parse(url: &str) -> Result<Self, InvalidDatabaseUrl> {
        if url.starts_with("sqlite:") && url.contains(":memory:") {
            return Err(InvalidDatabaseUrl::Memory);
        }
        let (scheme, rest) = url.split_once("://").ok_or(InvalidDatabaseUrl::Scheme)?;
        match scheme {
            "sqlite" => sqlite(rest),
            "postgres" | "postgresql" => postgres(url, rest),
            _ => Err(InvalidDatabaseUrl::Scheme),
        }
    }
}

/// The path is taken as it stands: `%20` is not a space.
fn sqlite(path: &str) -> Result<DatabaseUrl, InvalidDatabaseUrl> {
    match path {
        "" => Err(InvalidDatabaseUrl::Empty),
        path if path.contains('?') => Err(InvalidDatabaseUrl::SqliteParameters),
        path if path.chars().any(char::is_control) => Err(InvalidDatabaseUrl::Space),
        path => Ok(DatabaseUrl::Sqlite(PathBuf::from(path))),
    }
}

fn postgres(url: &str, rest: &str) -> Result<DatabaseUrl, InvalidDatabaseUrl> {
    if rest.is_empty() {
        return Err(InvalidDatabaseUrl::Empty);
    }
    if rest.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(InvalidDatabaseUrl::Space);
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match port_of(host) {
        Some(port) if port.parse::<u16>().is_err() => Err(InvalidDatabaseUrl::Port),
        _ => Ok(DatabaseUrl::Postgres(PostgresUrl(url.to_owned()))),
    }
}

/// What stands behind the colon of `HOST:PORT`; the colons of `[::1]` are the host's.
fn port_of(host: &str) -> Option<&str> {
    let behind = host.rsplit_once(']').map_or(host, |(_, behind)| behind);
    behind.rsplit_once(':').map(|(_, port)| port)
}

impl DatabaseUrl {
    /// The file, if it is SQLite.
    pub fn sqlite_path(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            Self::Postgres(_) => None,
        }
    }
}

impl PostgresUrl {
    /// The whole URL, password included. For opening connections only.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(&self.0))
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresUrl({})", redact(&self.0))
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Postgres(url) => url.fmt(f),
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
        }
    }
}

/// A URL with nothing in it that could be a password, also if it is not a URL at all.
///
/// It goes by what is known to be harmless, not by where a password belongs: people put them
/// unescaped where they spoil the syntax.
pub(super) fn redact(url: &str) -> String {
    const HIDDEN: &str = "***";
    let Some((scheme, rest)) = url.split_once("://") else {
        return HIDDEN.to_owned();
    };
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, rest),
    };
    let user = user.map(|user| match user.split_once(':') {
        Some((name, _)) if is_harmless(name) => format!("{name}:{HIDDEN}@"),
        None if is_harmless(user) => format!("{user}@"),
        _ => format!("{HIDDEN}@"),
    });
    let (place, query) = rest.split_once('?').map_or((rest, None), |(place, query)| (place, Some(query)));
    let host = place.split('/').next().unwrap_or_default();
    let clear = port_of(host).is_none_or(|port| port.parse::<u16>().is_ok()) && !place.contains('#');
    let place = if clear || scheme == "sqlite" { place } else { HIDDEN };
    let query = query.map(|query| format!("?{}", query.split('&').map(redact_parameter).collect::<Vec<_>>().join("&")));
    format!("{scheme}://{}{place}{}", user.unwrap_or_default(), query.unwrap_or_default())
}

fn is_harmless(user: &str) -> bool {
    user.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '%'))
}

fn redact_parameter(parameter: &str) -> String {
    const SHOWN: [&str; 8] =
        ["sslmode", "sslrootcert", "host", "hostaddr", "port", "dbname", "user", "application_name"];
    match parameter.split_once('=') {
        Some((name, _)) if SHOWN.contains(&name) => parameter.to_owned(),
        Some((name, _)) if is_harmless(name) => format!("{name}=***"),
        _ => "***".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_are_known() {
        for url in ["postgres://u@h/d", "postgresql:///d?host=/run/postgresql", "postgres://u:p@[::1]:5432/d"] {
            assert!(matches!(DatabaseUrl::parse(url), Ok(DatabaseUrl::Postgres(_))), "{url}");
        }
        assert_eq!(DatabaseUrl::parse("sqlite:///var/a.db"), Ok(DatabaseUrl::Sqlite("/var/a.db".into())));
        assert_eq!(DatabaseUrl::parse("sqlite://a.db"), Ok(DatabaseUrl::Sqlite("a.db".into())));
    }

    #[test]
    fn anything_else_is_refused() {
        use InvalidDatabaseUrl::{Empty, Memory, Port, Scheme, Space, SqliteParameters};
        for (url, why) in [
            ("mysql://u@h/d", Scheme),
            ("sqlite:a.db", Scheme),
            ("", Scheme),
            ("postgres://", Empty),
            ("sqlite://", Empty),
            ("postgres://u:a b@h/d", Space),
            ("postgres://u:a/b@h/d", Port),
            ("sqlite::memory:", Memory),
            ("sqlite://:memory:", Memory),
            ("sqlite:///a.db?mode=memory", SqliteParameters),
        ] {
            assert_eq!(DatabaseUrl::parse(url), Err(why), "{url}");
        }
    }

    #[test]
    fn no_spelling_of_a_password_is_shown() {
        for url in [
            "postgres://u:hunter2@h/d",
            "postgres://u:hun@ter2:hunter2@h:5432/d?sslmode=require",
            "postgres://u:/hunter2@h/d",
            "postgres://u:x?hunter2@h/d",
            "postgres://u:x#hunter2@h/d",
            "postgres://u:hunter2/d",
            "postgres://h/d?password=hunter2",
            "postgres://h/d?password=hunter2@home",
            "postgres://h/d?x=hunter2&hunter2",
            "postgres:/u:hunter2@h/d",
            "mysql://u:hunter2@h/d",
            "hunter2",
        ] {
            assert!(!redact(url).contains("hunter2"), "{}", redact(url));
            if let Ok(parsed) = DatabaseUrl::parse(url) {
                assert!(!format!("{parsed:?} {parsed}").contains("hunter2"), "{parsed:?}");
            }
        }
    }

    #[test]
    fn what_is_no_secret_stays_readable() {
        let url = "postgres://cronlatch:x@db.internal:5432/cronlatch?sslmode=verify-full";
        assert_eq!(redact(url), "postgres://cronlatch:***@db.internal:5432/cronlatch?sslmode=verify-full");
    }
}
