//! What is surprising about a schedule that is fine to read: told by `check`, never refused.

mod clock;
mod days;
mod steps;

use std::fmt;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::blackout::Blackouts;
use super::expression::{Expression, Tokens, tokenise};
use super::window::Window;

/// Something surprising about one expression, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caution {
    /// Its place in the list of expressions, from 0.
    pub expression: usize,
    text: String,
}

impl fmt::Display for Caution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// When a schedule with expressions ticks at all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting<'a> {
    pub zone: Tz,
    pub window: Window,
    pub blackouts: &'a Blackouts,
    /// From when on clock changes matter.
    pub from: DateTime<Utc>,
}

/// What is surprising about each of the expressions, in their order.
pub(super) fn cautions(expressions: &[Expression], setting: Setting<'_>) -> Vec<Caution> {
    let changes = clock::changes(setting);
    let of_one = |expression: &Expression| {
        let tokens = tokenise(expression.text()).expect("it was read before");
        let mut texts = days::trap(expression.fields(), &tokens);
        texts.extend(days::lacking(expression.fields(), &tokens));
        texts.extend(steps::uneven(expression.fields(), &tokens));
        texts.extend(clock::met(expression, setting.zone, &changes));
        texts
    };
    let numbered = expressions.iter().enumerate();
    numbered
        .flat_map(|(place, one)| of_one(one).into_iter().map(move |text| Caution { expression: place, text }))
        .collect()
}

/// The token of the day of month.
fn day_token<'a>(tokens: &Tokens<'a>) -> &'a str {
    let [_, _, day, _, _] = tokens.crontab;
    day
}
