use url::Url;

use super::command::{read_argv, read_shell};
use super::document::{Field, Refused, Section, Value};
use super::problem::Problem;
use crate::job::{Command, Notices, PingUrl};

/// A job that fails more often unseen is not watched at all.
const MOST_FAILURES: u32 = 1_000;

/// The keys about who is told how a job fares, as they were typed.
#[derive(Clone, Debug, Default)]
pub struct TypedNotices {
    pub on_failure: Field<Notice>,
    pub on_recovery: Field<Notice>,
    pub failures_before_notice: Field<u32>,
    pub ping_url: Field<PingUrl>,
}

/// What is run to tell somebody; `None`, an empty list, tells nobody whatever `[defaults]` say.
pub type Notice = Option<Command>;

impl TypedNotices {
    /// Reads the keys.
    pub fn read(section: &mut Section<'_>) -> Self {
        Self {
            on_failure: section.field("on_failure", read_notice),
            on_recovery: section.field("on_recovery", read_notice),
            failures_before_notice: section
                .field("failures_before_notice", |value| value.whole_number(1..=MOST_FAILURES)),
            ping_url: section.secret_field("ping_url", read_ping_url),
        }
    }

    /// These keys, and the defaults' where these are absent.
    pub fn over(&self, defaults: &Self) -> Self {
        Self {
            on_failure: self.on_failure.or(&defaults.on_failure),
            on_recovery: self.on_recovery.or(&defaults.on_recovery),
            failures_before_notice: self.failures_before_notice.or(&defaults.failures_before_notice),
            ping_url: self.ping_url.or(&defaults.ping_url),
        }
    }

    /// What the merged keys mean; `None` if nobody is told.
    pub fn meaning(&self) -> Option<Box<Notices>> {
        let notices = Notices {
            on_failure: self.on_failure.value().flatten(),
            on_recovery: self.on_recovery.value().flatten(),
            failures_before_notice: self.failures_before_notice.value_or(1),
            ping_url: self.ping_url.value(),
        };
        let tells_somebody =
            notices.on_failure.is_some() || notices.on_recovery.is_some() || notices.ping_url.is_some();
        tells_somebody.then(|| Box::new(notices))
    }

    /// `failures_before_notice` among a job's own keys, if the merged `keys` have no notice.
    pub fn meaningless(&self, keys: &Self) -> Option<Problem> {
        let notices = [&keys.on_failure, &keys.on_recovery];
        if notices.iter().any(|notice| notice.is_refused() || notice.value().flatten().is_some()) {
            return None;
        }
        self.failures_before_notice.needs("failures_before_notice", "on_failure or on_recovery")
    }
}

/// A line for the shell, or a list: program and arguments.
fn read_notice(value: &Value<'_>) -> Result<Notice, Refused> {
    if value.is_string() {
        return read_shell(value).map(Some);
    }
    if value.list()?.is_empty() {
        return Ok(None);
    }
    read_argv(value).map(Some)
}

/// What comes behind the address (`/start`, `/fail`) is put to its path.
fn read_ping_url(value: &Value<'_>) -> Result<PingUrl, Refused> {
    const REMEDY: &str = "write ping_url = \"https://HOST/PATH\"";
    let text = value.string()?;
    // None of the parser's messages quotes the address.
    let url = Url::parse(&text).map_err(|error| value.refuse(format!("not an address: {error}"), REMEDY))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(value.refuse("not an address of http or https", REMEDY));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(value.refuse("has a query or a fragment, and /start and /fail must go behind its path", REMEDY));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(value.refuse("has a user or a password in it, which is not sent", REMEDY));
    }
    Ok(PingUrl::from_checked(url.as_str().trim_end_matches('/').to_owned()))
}
