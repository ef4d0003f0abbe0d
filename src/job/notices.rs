use super::Command;

/// Who is told how a job fares. Boxed in the job, for most jobs tell nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notices {
    /// Run when a run has failed, was lost or missed.
    pub on_failure: Option<Command>,
    /// Run when a run has succeeded after a failure that was told.
    pub on_recovery: Option<Command>,
    /// How many failures in a row it takes until the first is told; at least 1.
    pub failures_before_notice: u32,
    /// Where starts, successes and failures are pinged: `URL/start`, `URL`, `URL/fail`.
    pub ping_url: Option<PingUrl>,
}

/// An `http` or `https` address without query and fragment. What it holds after the host is as good as a
/// password, and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct PingUrl(String);

impl PingUrl {
    /// Wraps an address that was checked.
    pub fn from_checked(url: String) -> Self {
        Self(url)
    }

    /// The whole address, for the request alone.
    pub fn as_secret(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for PingUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PingUrl(..)")
    }
}
