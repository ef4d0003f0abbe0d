use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::{Keys, Place, Section, Typed};
use crate::config::problem::Problem;
use crate::config::{duration, size};
use crate::job::Moment;

/// Why a value is not what it should be; at least one problem.
#[derive(Debug)]
pub struct Refused(pub Vec<Problem>);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(vec![problem])
    }
}

/// A value of a known key, before it is known whether it has the right type.
pub struct Value<'a> {
    /// The key.
    pub key: &'static str,
    pub(super) inner: &'a DeValue<'a>,
    /// Where it stands.
    pub place: Place,
}

impl<'a> Value<'a> {
    /// Puts the three together.
    pub fn new(key: &'static str, inner: &'a DeValue<'a>, place: Place) -> Self {
        Self { key, inner, place }
    }

    /// The same, with a text that no message may show.
    pub fn secret(&self) -> Self {
        Self { key: self.key, inner: self.inner, place: self.place.clone().secret() }
    }

    /// A refusal here.
    pub fn refuse(&self, wrong: impl Into<String>, remedy: impl Into<String>) -> Refused {
        self.place.problem(wrong, remedy).into()
    }

    fn wrong_type(&self, expected: &str, remedy: impl Into<String>) -> Refused {
        self.refuse(format!("expected {expected}, not {}", kind_of(self.inner)), remedy)
    }

    /// Whether it is a string.
    pub fn is_string(&self) -> bool {
        matches!(self.inner, DeValue::String(_))
    }

    /// Whether it is a table.
    pub fn is_table(&self) -> bool {
        matches!(self.inner, DeValue::Table(_))
    }

    /// Whether it is a whole number.
    pub fn is_number(&self) -> bool {
        matches!(self.inner, DeValue::Integer(_))
    }

    /// A string.
    pub fn string(&self) -> Result<String, Refused> {
        match self.inner {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Array(_) | DeValue::Table(_) => Err(self.wrong_type("a string", "write one text in quotes")),
            _ => Err(self.wrong_type("a string", "put it in quotes")),
        }
    }

    /// A string without NUL, which neither arguments nor paths nor variables can hold.
    pub fn c_string(&self) -> Result<String, Refused> {
        let text = self.string()?;
        if text.contains('\0') {
            return Err(self.refuse("holds a NUL character", "remove it: the system cuts texts off there"));
        }
        Ok(text)
    }

    /// A string that a newtype accepts.
    pub fn checked<T, E: std::fmt::Display>(&self, check: impl FnOnce(String) -> Result<T, E>) -> Result<T, Refused> {
        let text = self.string()?;
        check(text).map_err(|error| self.refuse(error.to_string(), "choose another"))
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool, Refused> {
        match self.inner {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.wrong_type("true or false", format!("write {} = true or {0} = false", self.key))),
        }
    }

    /// A whole number within bounds.
    pub fn whole_number<N>(&self, bounds: RangeInclusive<N>) -> Result<N, Refused>
    where
        N: Copy + fmt::Display + PartialOrd + TryFrom<i64>,
    {
        let remedy = || format!("write a whole number from {} to {}", bounds.start(), bounds.end());
        let DeValue::Integer(number) = self.inner else {
            return Err(self.wrong_type("a whole number", remedy()));
        };
        let number = i64::from_str_radix(number.as_str(), number.radix()).ok().and_then(|n| N::try_from(n).ok());
        number.filter(|number| bounds.contains(number)).ok_or_else(|| self.refuse("out of range", remedy()))
    }

    /// A list of whole numbers within bounds.
    pub fn whole_numbers<N>(&self, bounds: RangeInclusive<N>) -> Result<Vec<N>, Refused>
    where
        N: Copy + fmt::Display + PartialOrd + TryFrom<i64>,
    {
        let remedy = format!("write {} = [{}, ...]", self.key, bounds.start());
        let elements = self.elements("a list of whole numbers", remedy)?;
        all(elements.iter().map(|element| element.whole_number(bounds.clone())))
    }

    /// A number of bytes with its unit, at least `least`.
    pub fn size(&self, least: u64) -> Result<u64, Refused> {
        let remedy = || format!("write it like {} = \"512M\"", self.key);
        match self.inner {
            DeValue::String(text) => size::parse(text, least).map_err(|error| self.refuse(error.to_string(), remedy())),
            DeValue::Integer(_) | DeValue::Float(_) => Err(self.refuse("a size without a unit", remedy())),
            _ => Err(self.wrong_type("a size", remedy())),
        }
    }

    /// A duration, at least `least`.
    pub fn duration(&self, least: Duration) -> Result<Duration, Refused> {
        match self.inner {
            DeValue::String(text) => duration::parse(text, least)
                .map_err(|error| self.refuse(error.to_string(), format!("write it like {} = \"30s\"", self.key))),
            DeValue::Integer(_) | DeValue::Float(_) => {
                let number = self.place.typed().unwrap_or_default();
                let remedy = format!("write \"{number}s\" if seconds are meant");
                Err(self.refuse("a duration without a unit", remedy))
            }
            _ => Err(self.wrong_type("a duration", format!("write it like {} = \"30s\"", self.key))),
        }
    }

    /// One of a few words; `later` are those of a later version.
    pub fn word<T: Copy>(&self, words: &[(&str, T)], later: &[&str]) -> Result<T, Refused> {
        let quoted = |joint: &str| words.iter().map(|(word, _)| format!("{word:?}")).collect::<Vec<_>>().join(joint);
        let remedy = format!("write {} = {}", self.key, quoted(" or "));
        let DeValue::String(text) = self.inner else {
            return Err(self.wrong_type("a string", remedy));
        };
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == text.as_ref()) {
            return Ok(*meaning);
        }
        if later.contains(&text.as_ref()) {
            return Err(self.refuse("not supported by this version yet", remedy));
        }
        Err(self.refuse(format!("not one of {}", quoted(", ")), remedy))
    }

    /// An absolute path.
    pub fn absolute_path(&self) -> Result<PathBuf, Refused> {
        let path = PathBuf::from(self.c_string()?);
        if !path.is_absolute() {
            return Err(self.refuse("not an absolute path", format!("write {} = \"/...\"", self.key)));
        }
        Ok(path)
    }

    /// The elements of a list, each with its own place.
    pub fn list(&self) -> Result<Vec<Value<'a>>, Refused> {
        self.elements("a list of strings", format!("write {} = [\"...\", \"...\"]", self.key))
    }

    fn elements(&self, expected: &str, remedy: String) -> Result<Vec<Value<'a>>, Refused> {
        let DeValue::Array(array) = self.inner else { return Err(self.wrong_type(expected, remedy)) };
        let elements = array
            .iter()
            .enumerate()
            .map(|(index, item)| Value::new(self.key, item.get_ref(), self.place.element(index, item.span())));
        Ok(elements.collect())
    }

    /// A list, each element read in the same way; all that are bad are told.
    pub fn list_of<T>(&self, read: impl Fn(&Value<'a>) -> Result<T, Refused>) -> Result<Vec<Typed<T>>, Refused> {
        all(self.list()?.iter().map(|element| read(element).map(|value| Typed { value, place: element.place.clone() })))
    }

    /// A string or a list of strings, each read in the same way.
    pub fn one_or_more<T>(&self, read: impl Fn(&Value<'a>) -> Result<T, Refused>) -> Result<Vec<Typed<T>>, Refused> {
        match self.inner {
            DeValue::String(_) => Ok(vec![Typed { value: read(self)?, place: self.place.clone() }]),
            DeValue::Array(_) => self.list_of(read),
            _ => Err(self.wrong_type("a string or a list of strings", format!("write {} = \"...\"", self.key))),
        }
    }

    /// A list of tables, each read in the same way; all problems of all are told.
    pub fn tables<T>(
        &self,
        keys: &'static Keys,
        remedy: &str,
        read: impl Fn(&mut Section<'a>) -> Option<T>,
    ) -> Result<Vec<Typed<T>>, Refused> {
        let DeValue::Array(array) = self.inner else { return Err(self.wrong_type("a list of tables", remedy)) };
        all(array.iter().enumerate().map(|(index, item)| {
            let element = Value::new(self.key, item.get_ref(), self.place.element(index, item.span()));
            let DeValue::Table(table) = element.inner else { return Err(element.wrong_type("a table", remedy)) };
            let place = element.place.clone();
            Section::of_element(keys, table, element.place, &read).map(|value| Typed { value, place })
        }))
    }

    /// A table whose keys are known, read as a whole.
    pub fn record<T>(
        &self,
        keys: &'static Keys,
        remedy: &str,
        read: impl FnOnce(&mut Section<'a>) -> T,
    ) -> Result<T, Refused> {
        let DeValue::Table(table) = self.inner else { return Err(self.wrong_type("a table", remedy)) };
        Section::of_element(keys, table, self.place.clone(), |section| Some(read(section)))
    }

    /// A moment: a text, or a date of TOML.
    pub fn moment(&self) -> Result<Moment, Refused> {
        let text = match self.inner {
            DeValue::String(text) => text.to_string(),
            DeValue::Datetime(date) => date.to_string(),
            _ => {
                return Err(
                    self.wrong_type("a date or time", format!("write {} = \"2027-01-01T03:00:00+01:00\"", self.key))
                );
            }
        };
        Moment::parse(&text).map_err(|error| self.place.problem_with_remedy_inside(error.to_string()).into())
    }

    /// The names and values of a table whose names are free.
    pub fn table(&self) -> Result<Vec<(String, Value<'a>)>, Refused> {
        let DeValue::Table(table) = self.inner else {
            return Err(self.wrong_type("a table", format!("write {} = {{ NAME = \"...\" }}", self.key)));
        };
        let entries = table.iter().map(|(name, value)| {
            let place = self.place.key(name.get_ref(), name.span().start, value.span());
            (name.get_ref().to_string(), Value::new(self.key, value.get_ref(), place))
        });
        Ok(entries.collect())
    }
}

/// The type of a value, with an article.
pub(super) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// All values, or all refusals.
pub fn all<T>(read: impl IntoIterator<Item = Result<T, Refused>>) -> Result<Vec<T>, Refused> {
    let mut values = Vec::new();
    let mut problems = Vec::new();
    for result in read {
        match result {
            Ok(value) => values.push(value),
            Err(refused) => problems.extend(refused.0),
        }
    }
    if problems.is_empty() { Ok(values) } else { Err(Refused(problems)) }
}
