use std::fmt;

/// Makes an enum whose variants are words of a column, with the way there and back.
macro_rules! column_words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every one, in the order of their life.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word in tables, logs and JSON.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// The way back; `None` for a word that this version doesn't know.
            pub fn from_column(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

column_words! {
    /// Where a run is in its life.
    RunState {
        /// Nobody's yet: the lock is held, or the claim was given back; any eligible host may take it.
        Waiting = "waiting",
        /// One host's, with the lock; the job may have been started.
        Claimed = "claimed",
        /// Known to be started.
        Running = "running",
        /// Ended well.
        Succeeded = "succeeded",
        /// Ended badly, or couldn't be started.
        Failed = "failed",
        /// Stopped on purpose: a drain, a cancel.
        Cancelled = "cancelled",
        /// Its host died, or its lease ended; how far the job came is unknown.
        Lost = "lost",
        /// Not run because of another run.
        Skipped = "skipped",
        /// Not run because nobody could.
        Missed = "missed",
    }
}

impl RunState {
    /// Whether the run's story is over.
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Waiting | Self::Claimed | Self::Running)
    }
}

column_words! {
    /// What made a run.
    TriggerKind {
        /// The schedule.
        Schedule = "schedule",
        /// Somebody's request.
        Manual = "manual",
        /// The schedule, but late: nobody could at the time.
        CatchUp = "catch_up",
        /// The attempt before failed.
        Retry = "retry",
        /// The attempt before was lost.
        Rerun = "rerun",
        /// The success of another job.
        After = "after",
    }
}

column_words! {
    /// Why a run was skipped.
    SkipReason {
        /// The lock was held by another run.
        LockHeld = "lock_held",
        /// It waited for the lock as long as it may.
        WaitTimedOut = "wait_timed_out",
        /// An earlier trigger of the job waits already.
        AlreadyWaiting = "already_waiting",
        /// A later trigger of the job took its place.
        Superseded = "superseded",
    }
}

column_words! {
    /// What became of a request.
    RequestOutcome {
        /// Its run was told.
        Told = "told",
        /// Its run was over before it was told.
        Over = "over",
    }
}

column_words! {
    /// Why a trigger was missed.
    MissedReason {
        /// A later trigger of the job was caught up instead.
        Superseded = "superseded",
        /// It could not be started within `start_deadline`.
        StartDeadline = "start_deadline",
        /// It is older than the job's catch-up goes back.
        TooOld = "too_old",
        /// The job doesn't catch up.
        NoCatchUp = "no_catch_up",
        /// The job was paused.
        Paused = "paused",
        /// The job was edited before it was accounted for.
        Edited = "edited",
        /// A blackout of the job's schedule took it.
        Blackout = "blackout",
        /// The job catches up on so many at most, and later ones came.
        TooMany = "too_many",
        /// No live host may run the job.
        NoHost = "no_host",
    }
}

impl MissedReason {
    /// Whether something went wrong; not where it is as somebody wanted, or a later run stands for it.
    pub fn is_failure(self) -> bool {
        match self {
            Self::StartDeadline | Self::TooOld | Self::NoCatchUp | Self::TooMany | Self::NoHost => true,
            Self::Superseded | Self::Paused | Self::Edited | Self::Blackout => false,
        }
    }

    /// The words of those where something went wrong.
    pub fn failures() -> Vec<&'static str> {
        Self::ALL.iter().filter(|reason| reason.is_failure()).map(|reason| reason.as_str()).collect()
    }
}

column_words! {
    /// What took triggers that are over without a row each.
    RangeKind {
        /// Nobody could run them.
        Missed = "missed",
        /// Somebody had paused the job.
        Paused = "paused",
        /// A blackout of the job's schedule.
        Blackout = "blackout",
    }
}
