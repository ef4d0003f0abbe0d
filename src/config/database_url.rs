use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

/// The shared database. `Debug` and `Display` never show a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A PostgreSQL server, for any number of hosts.
    Postgres(PostgresUrl),
    /// A SQLite file, for the daemons of one machine; an absolute path.
    Sqlite(PathBuf),
}

/// The URL of a PostgreSQL server; it may hold a password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

/// Why a text is no database. The messages quote nothing of it but the name of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// `@`, `#`, `/` or `?` where it ends the user and password too early or too late.
    #[error("an '@', '#', '/' or '?' of the user, the password or a parameter is not escaped")]
    Unescaped,
    /// A parameter that the driver would ignore, and with it what the writer relies on.
    #[error("unknown parameter {0:?}")]
    Parameter(String),
    /// A parameter without a name that can be shown: it may be a piece of a password.
    #[error("a parameter that is not NAME=VALUE")]
    NoParameter,
    /// A path that starts at the current directory, which is another one for each caller.
    #[error("not an absolute path")]
    Relative,
    /// SQLite in memory.
    #[error("a database in memory is not shared with anybody")]
    Memory,
    /// `?mode=...`.
    #[error("parameters of SQLite are set by cronlatch")]
    SqliteParameters,
}

impl InvalidDatabaseUrl {
    /// What to do about it.
    pub fn remedy(&self) -> Cow<'static, str> {
        let remedy = match self {
            Self::Parameter(name) => return Cow::Owned(remedy_of_parameter(name)),
            Self::Scheme | Self::Empty => "write \"postgres://USER@HOST/DATABASE\" or \"sqlite:///PATH/TO/FILE.db\"",
            Self::Space => "remove them; in a password a space is written %20",
            Self::Port => "write HOST:PORT; in a password / is written %2F, # %23, ? %3F, : %3A and @ %40",
            Self::Unescaped => "percent-encode it: @ is %40, # is %23, / is %2F, ? is %3F, : is %3A and % is %25",
            Self::NoParameter => "write ?NAME=VALUE&NAME=VALUE; in a password ? is written %3F",
            Self::Relative => "write three slashes and an absolute path: \"sqlite:///PATH/TO/FILE.db\"",
            Self::Memory => "name a file: \"sqlite:///PATH/TO/FILE.db\"",
            Self::SqliteParameters => "remove everything from the question mark on",
        };
        Cow::Borrowed(remedy)
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
        path if !path.starts_with('/') => Err(InvalidDatabaseUrl::Relative),
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
    // A password with an unescaped `/`, `?` or `#` ends the authority; what is left of it can look
    // like HOST:PORT, and its end like a path or a parameter.
    let (authority, behind) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if rest.contains('#') || behind.contains('@') || authority.matches('@').count() > 1 {
        return Err(InvalidDatabaseUrl::Unescaped);
    }
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    match port_of(host) {
        Some(port) if port.parse::<u16>().is_err() => Err(InvalidDatabaseUrl::Port),
        _ => refuse_parameters(behind).map(|()| DatabaseUrl::Postgres(PostgresUrl(url.to_owned()))),
    }
}

/// What the driver (sqlx 0.9) knows, without other spellings of the same.
const PARAMETERS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];
const OTHER_PARAMETERS: [&str; 6] =
    ["ssl-mode", "ssl-root-cert", "ssl-ca", "ssl-cert", "ssl-key", "statement-cache-capacity"];

/// The driver ignores what it doesn't know: `ssl_mode=verify-full` would verify nothing.
fn refuse_parameters(behind: &str) -> Result<(), InvalidDatabaseUrl> {
    let query = behind.split_once('?').map_or("", |(_, query)| query);
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some((name, _)) if is_known_parameter(name) => {}
            Some((name, _)) if is_harmless(name) && !name.is_empty() => {
                return Err(InvalidDatabaseUrl::Parameter(name.to_owned()));
            }
            _ => return Err(InvalidDatabaseUrl::NoParameter),
        }
    }
    Ok(())
}

/// `options[NAME]` is one setting of the server.
fn is_known_parameter(name: &str) -> bool {
    let is_option = name.strip_prefix("options[").and_then(|name| name.strip_suffix(']')).is_some_and(is_harmless);
    is_option || PARAMETERS.contains(&name) || OTHER_PARAMETERS.contains(&name)
}

fn remedy_of_parameter(name: &str) -> String {
    let known = PARAMETERS.iter().chain(&OTHER_PARAMETERS);
    let near = known.map(|known| (strsim::osa_distance(known, name), known)).min_by_key(|(distance, _)| *distance);
    match near {
        Some((distance, near)) if distance <= name.chars().count().div_ceil(3) => format!("did you mean {near:?}?"),
        _ => format!("remove it; the parameters are {}", PARAMETERS.join(", ")),
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
    }

    #[test]
    fn anything_else_is_refused() {
        use InvalidDatabaseUrl::{
            Empty, Memory, NoParameter, Port, Relative, Scheme, Space, SqliteParameters, Unescaped,
        };
        for (url, why) in [
            ("mysql://u@h/d", Scheme),
            ("sqlite:a.db", Scheme),
            ("", Scheme),
            ("postgres://", Empty),
            ("sqlite://", Empty),
            ("postgres://u:a b@h/d", Space),
            ("postgres://u:a/b@h/d", Unescaped),
            ("postgres://u:a/b", Port),
            ("postgres://u:a@b@h/d", Unescaped),
            ("postgres://u@corp:a@h/d", Unescaped),
            ("postgres://u:12#a@h/d", Unescaped),
            ("postgres://u:12/a@h/d", Unescaped),
            ("postgres://u:12?a=b@h/d", Unescaped),
            ("postgres://u:a%40b@h/d?sslmode=require&hunter2", NoParameter),
            ("postgres://u@h/d?a b=1", Space),
            ("postgres://u@h/d?=1", NoParameter),
            ("sqlite://a.db", Relative),
            ("sqlite::memory:", Memory),
            ("sqlite://:memory:", Memory),
            ("sqlite:///a.db?mode=memory", SqliteParameters),
        ] {
            assert_eq!(DatabaseUrl::parse(url), Err(why), "{url}");
        }
    }

    #[test]
    fn a_parameter_that_the_driver_would_ignore_is_refused_without_its_value() {
        for (parameter, remedy) in [
            ("ssl_mode", "did you mean \"sslmode\"?"),
            ("sslmod", "did you mean \"sslmode\"?"),
            ("passwrd", "did you mean \"password\"?"),
            ("connect_timeout", "remove it; the parameters are sslmode, "),
        ] {
            let error = DatabaseUrl::parse(&format!("postgres://u@h/d?sslmode=require&{parameter}=hunter2"));
            let error = error.expect_err("it is unknown");
            assert_eq!(error, InvalidDatabaseUrl::Parameter(parameter.to_owned()));
            assert!(error.remedy().starts_with(remedy), "{}", error.remedy());
            assert!(!format!("{error:?} {error} {}", error.remedy()).contains("hunter2"));
        }
        let all = PARAMETERS.iter().chain(&OTHER_PARAMETERS).map(|name| format!("{name}=1")).collect::<Vec<_>>();
        let all = format!("postgres://u@h/d?options[work_mem]=1&{}", all.join("&"));
        assert!(DatabaseUrl::parse(&all).is_ok(), "{all}");
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
