use super::super::expression::{Fields, Values};
use super::list::{Progression, list, ordinal, runs};

/// So many times of a day are written out at most.
const MOST_LISTED: usize = 6;

/// At which times of a day.
pub(super) fn words(fields: &Fields) -> String {
    let times = Times::of(fields);
    if fields.hour.is_any() {
        return times.all_day();
    }
    match &times.minutes[..] {
        [0] if times.hours_go_around() => times.every_few_hours(),
        [_] if times.hours.len() > 4 && times.hours_are_in_a_row() => times.every_few_hours(),
        minutes if times.hours.len() * minutes.len() <= MOST_LISTED => Some(times.listed()),
        [_] => times.every_few_hours(),
        _ if times.hours_are_in_a_row() => times.row_of_hours(),
        _ => None,
    }
    .unwrap_or_else(|| times.within_hours())
}

/// What the fields name, each in order and never empty.
struct Times {
    seconds: Vec<u16>,
    minutes: Vec<u16>,
    hours: Vec<u16>,
}

impl Times {
    fn of(fields: &Fields) -> Self {
        let numbers = |values: &Values| values.numbers().iter().collect();
        Self { seconds: numbers(&fields.second), minutes: numbers(&fields.minute), hours: numbers(&fields.hour) }
    }

    /// Every hour is named.
    fn all_day(&self) -> String {
        let minutes = match (&self.minutes[..], self.even_minutes()) {
            (_, Some(Progression { first: 0, step: 1, .. })) => return self.of_every_minute(),
            (_, Some(Progression { first: 0, step, .. })) => format!("every {step} minutes"),
            (_, Some(Progression { first, step, .. })) => format!("every {step} minutes from :{first:02}"),
            ([0], _) => "every hour".to_owned(),
            ([minute], _) => format!("every hour at :{minute:02}"),
            _ => format!("{} of every hour", self.of_hour()),
        };
        minutes + &self.of_minute()
    }

    fn of_every_minute(&self) -> String {
        match (self.seconds.len(), self.even_seconds()) {
            (60, _) => "every second".to_owned(),
            (_, Some(step)) => format!("every {step} seconds"),
            _ => format!("every minute{}", self.of_minute()),
        }
    }

    /// Few times, written out.
    fn listed(&self) -> String {
        let second = match &self.seconds[..] {
            [0] => String::new(),
            [second] => format!(":{second:02}"),
            _ => String::new(),
        };
        let time = |hour: &u16, minute: &u16| format!("{hour:02}:{minute:02}{second}");
        let times = self.hours.iter().flat_map(|hour| self.minutes.iter().map(move |minute| time(hour, minute)));
        let within = if second.is_empty() { self.of_minute() } else { String::new() };
        format!("at {}{within}", list(&times.collect::<Vec<_>>()))
    }

    /// One minute of hours at one distance.
    fn every_few_hours(&self) -> Option<String> {
        let (minute, Progression { first, last, step }) = (self.minutes.first()?, Progression::of(&self.hours)?);
        let every = if step == 1 { "every hour".to_owned() } else { format!("every {step} hours") };
        let is_all_day = *minute == 0 && self.hours_go_around();
        let ends = format!(" from {first:02}:{minute:02} to {last:02}:{minute:02}");
        Some(every + if is_all_day { "" } else { &ends } + &self.of_minute())
    }

    fn hours_are_in_a_row(&self) -> bool {
        self.hours.windows(2).all(|pair| pair[1] - pair[0] == 1)
    }

    /// From midnight to midnight at one distance.
    fn hours_go_around(&self) -> bool {
        Progression::of(&self.hours).is_some_and(|hours| hours.first == 0 && hours.goes_around(24))
    }

    /// Minutes at one distance through hours in a row.
    fn row_of_hours(&self) -> Option<String> {
        let (first_hour, last_hour) = (self.hours.first()?, self.hours.last()?);
        let of_one_hour = || Progression::of(&self.minutes).filter(|_| self.hours.len() == 1);
        let Progression { first, last, step } = self.even_minutes().or_else(of_one_hour)?;
        let ends =
            |from: &str, to: &str| format!("from {first_hour:02}:{first:02}{from} to {last_hour:02}:{last:02}{to}");
        if step == 1 {
            let last_second = self.seconds.last()?;
            match (self.seconds.len(), self.even_seconds()) {
                (60, _) => return Some(format!("every second {}", ends(":00", ":59"))),
                (_, Some(step)) => {
                    return Some(format!("every {step} seconds {}", ends(":00", &format!(":{last_second:02}"))));
                }
                _ => {}
            }
        }
        Some(format!("{} {}{}", every_minutes(step), ends("", ""), self.of_minute()))
    }

    /// Whatever it is, told for each hour.
    fn within_hours(&self) -> String {
        let hours = match Progression::of(&self.hours) {
            Some(Progression { first, last, step }) if step > 1 => {
                format!("every {} hour from {first:02} to {last:02}", ordinal(step))
            }
            _ if self.hours.len() == 1 => format!("the hour {:02}", self.hours[0]),
            _ => format!("the hours {}", runs(&self.hours, |hour| format!("{hour:02}"))),
        };
        format!("{} of {hours}{}", self.of_hour(), self.of_minute())
    }

    /// The minutes of an hour.
    fn of_hour(&self) -> String {
        match (self.even_minutes(), Progression::of(&self.minutes)) {
            (Some(Progression { first: 0, step, .. }), _) => every_minutes(step),
            (_, Some(Progression { first, last, step })) => {
                format!("{} from :{first:02} to :{last:02}", every_minutes(step))
            }
            _ => format!("at {}", runs(&self.minutes, |minute| format!(":{minute:02}"))),
        }
    }

    /// The seconds of a minute, if they are more than its first.
    fn of_minute(&self) -> String {
        match (&self.seconds[..], self.even_seconds()) {
            ([0], _) => String::new(),
            ([second], _) => format!(", at second {second}"),
            (seconds, _) if seconds.len() == 60 => ", each second of that minute".to_owned(),
            (_, Some(step)) => format!(", every {step} seconds of that minute"),
            (seconds, _) => format!(", at seconds {}", runs(seconds, |second| second.to_string())),
        }
    }

    /// Minutes at a distance that an hour is a multiple of.
    fn even_minutes(&self) -> Option<Progression> {
        Progression::of_few(&self.minutes).filter(|even| even.goes_around(60))
    }

    /// The distance of seconds that begin with 0, where a minute is a multiple of it.
    fn even_seconds(&self) -> Option<u16> {
        let even = Progression::of_few(&self.seconds).filter(|even| even.first == 0 && even.goes_around(60));
        even.map(|even| even.step)
    }
}

fn every_minutes(step: u16) -> String {
    if step == 1 { "every minute".to_owned() } else { format!("every {step} minutes") }
}
