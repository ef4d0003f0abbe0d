use chrono_tz::Tz;

use super::expression::Field;

/// Why an expression is refused; the text names the place and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSchedule {
    /// A schedule without any expression.
    #[error("a schedule needs at least one expression; write e.g. \"0 3 * * *\"")]
    NoExpression,
    /// Empty, or spaces and tabs only.
    #[error("the expression is blank; write five fields, e.g. \"0 3 * * *\"")]
    Blank,
    /// More bytes than [`MAX_BYTES`](super::MAX_BYTES).
    #[error("the expression has {0} bytes, at most 512 are allowed; write a list of shorter ones")]
    TooLong(usize),
    /// Something that looks like a space, a digit or a star and is none.
    #[error("character {at} is U+{:04X}, only printable ASCII, spaces and tabs are allowed; type it again", *.character as u32)]
    Character {
        /// Its place, from 1.
        at: usize,
        /// What it is.
        character: char,
    },
    /// Neither five, six nor seven fields.
    #[error(
        "the expression has {}, with spaces between them there must be 5 (minute, hour, day of month, month, \
         day of week), 6 (second first) or 7 (second first, year last)",
        fields(*.0)
    )]
    FieldCount(usize),
    /// An `@` word that is no shorthand, or that is not alone.
    #[error("{token:?}: {remedy}")]
    Shorthand {
        /// The word.
        token: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// Something from around the expression: a variable, a quote, a comment, a command.
    #[error("{token:?} is no field: {remedy}")]
    Foreign {
        /// The token.
        token: String,
        /// What to write instead.
        remedy: &'static str,
    },
    /// One field is wrong.
    #[error("{field} {token:?}: {problem}")]
    Field {
        /// Which one.
        field: Field,
        /// The item of its list that is wrong.
        token: String,
        /// What is wrong with it, and the remedy.
        problem: FieldProblem,
    },
    /// Fine to read, but there is no such day, or it falls into a gap that wildcards leave out.
    #[error(
        "{expression:?} never fires: {zone} has no such time on any day from 1970 to 2100; \
         correct the day of month, the month or the year"
    )]
    NeverFires {
        /// The text.
        expression: String,
        /// Its zone.
        zone: Tz,
    },
    /// Fine to read, but its blackouts take every instant.
    #[error("the blackouts leave no instant of the schedule; shorten one, or remove it")]
    BlackedOut,
    /// Fine to read, but a blackout of it begins anew before it ends, hundreds of times.
    #[error(
        "a recurring blackout begins more than 300 times without a pause; let it begin less often and last longer, \
         e.g. {{ schedule = \"0 0 1 * *\", lasts = \"20d\" }}"
    )]
    DenseBlackout,
}

fn fields(count: usize) -> String {
    if count == 1 { "1 field".to_owned() } else { format!("{count} fields") }
}

/// What is wrong with one item of a field, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldProblem {
    /// `1,,2`.
    #[error("a list item is empty; remove the stray comma")]
    EmptyItem,
    /// `60` as a minute.
    #[error("{value} is out of range; allowed are {allowed}")]
    OutOfRange {
        /// The number as typed.
        value: String,
        /// What the field takes.
        allowed: &'static str,
    },
    /// Neither a number nor a name of this field.
    #[error("{text:?} is no value; allowed are {allowed}")]
    NoValue {
        /// The part that can't be read.
        text: String,
        /// What the field takes.
        allowed: &'static str,
    },
    /// `*5`, `5*`, `**`.
    #[error("* stands alone or before a step; write */5, or put a space between two fields")]
    GluedStar,
    /// `5-`, `-5`, `1-2-3`.
    #[error("a range is two values with one dash; allowed are {allowed}, write e.g. {example}")]
    Range {
        /// What the field takes.
        allowed: &'static str,
        /// A range that would do.
        example: &'static str,
    },
    /// `22-2`.
    #[error("the range runs backwards; write {rewrite}")]
    Backwards {
        /// The same values in rising order.
        rewrite: String,
    },
    /// `/5`.
    #[error("a step needs a range before it; write *{step}")]
    BareStep {
        /// The item itself.
        step: String,
    },
    /// `*/0`, `*/x`, `*/`.
    #[error("{step:?} is no step; a step is a number from 1 to 9999, as in */5")]
    Step {
        /// What stands after the slash.
        step: String,
    },
    /// `*/5/2`.
    #[error("an item has one step at most; write e.g. */5")]
    TwoSteps,
    /// `MON/2`, which every library reads differently.
    #[error("a step after a single name is ambiguous; write {rewrite}")]
    StepAfterName {
        /// The range that Debian's cron would take it for.
        rewrite: String,
    },
    /// `?` in a minute, or with something beside it.
    #[error("? stands alone, and only in a day field; write *")]
    Question,
    /// `1~10`.
    #[error("~ draws a random value, another on each host; write one value or a list")]
    Random,
    /// `L-31`.
    #[error("a month has at most 30 days before its last; write L, or L-1 to L-30")]
    BeforeLast,
    /// `W`.
    #[error("W needs a day before it; write e.g. 15W, or LW")]
    LoneW,
    /// `1-15W`.
    #[error("W takes one day; write a list, e.g. 1W,15W")]
    WorkdayRange,
    /// `L-3W`.
    #[error("W takes a day from 1 to 31 or L; write L-3, LW, or e.g. 28W")]
    WorkdayBeforeLast,
    /// `L` as a weekday: Saturday in Quartz, the month's last day elsewhere.
    #[error("L alone is read in more than one way; write SAT for every Saturday, or FRIL for a month's last Friday")]
    LoneL,
    /// `FRI#6`.
    #[error("a month has at most five of a weekday; write {weekday}#1 to {weekday}#5, or {weekday}L for the last")]
    Nth {
        /// The weekday as typed.
        weekday: String,
    },
    /// `MON-FRI#2`, `1-5L`.
    #[error("L and # take one weekday; write a list, e.g. MON#2,FRI#2")]
    RelativeRange,
    /// `L/2`.
    #[error("L, W and # take no step; remove it")]
    RelativeStep,
    /// `H` in an expression of no job.
    #[error("H is derived from a job's name, and there is none here; write a number")]
    HashedWithoutJob,
    /// `H` as a year.
    #[error("H has no place in the year; write the year")]
    HashedYear,
    /// `H(22-2)`, `H(5`, `H-5`.
    #[error("H draws from a rising range in brackets; write e.g. H(0-7)")]
    HashedRange,
    /// `H/40`.
    #[error(
        "a step of {step} is longer than {first}-{last}, which H draws from; write H, or a step up to {}",
        last - first + 1
    )]
    HashedStep {
        /// The step.
        step: u16,
        /// Where the range begins.
        first: u16,
        /// Where it ends.
        last: u16,
    },
}
