use std::rc::Rc;

use toml::de::{DeTable, DeValue};

use super::value::kind_of;
use super::{Field, Keys, Place, Refused, Source, Taken, Typed, Value};
use crate::config::problem::Problem;

/// One table that is being read: hands out its values, collects its problems.
pub struct Section<'a> {
    keys: &'static Keys,
    /// `None` for a table that is not there; all its keys are absent then.
    table: Option<&'a DeTable<'a>>,
    place: Place,
    /// The known keys that were probably meant by those that are not.
    misspelt: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl<'a> Section<'a> {
    /// The top of a file.
    pub fn top(source: &Rc<Source>, table: &'a DeTable<'a>, keys: &'static Keys) -> Self {
        Self::new(keys, Some(table), Place::file(source))
    }

    fn new(keys: &'static Keys, table: Option<&'a DeTable<'a>>, place: Place) -> Self {
        let typed = table.into_iter().flat_map(|table| table.keys()).map(|typed| typed.get_ref().as_ref());
        let unknown = typed.filter(|typed| !keys.known.contains(typed) && !keys.later.contains(typed));
        let misspelt = unknown.filter_map(|typed| keys.nearest(typed)).collect();
        Self { keys, table, place, misspelt, problems: Vec::new() }
    }

    /// Where the table stands.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Whether nothing was wrong so far.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    /// Adds a problem.
    pub fn push(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Reads one key.
    pub fn field<T>(&mut self, key: &'static str, read: impl FnOnce(&Value<'a>) -> Result<T, Refused>) -> Field<T> {
        let value = self.value(key);
        self.field_of(key, value, read)
    }

    /// Reads one key whose value no message may ever show.
    pub fn secret_field<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&Value<'a>) -> Result<T, Refused>,
    ) -> Field<T> {
        let value = self.value(key).map(|value| value.secret());
        self.field_of(key, value, read)
    }

    fn field_of<T>(
        &mut self,
        key: &'static str,
        value: Option<Value<'a>>,
        read: impl FnOnce(&Value<'a>) -> Result<T, Refused>,
    ) -> Field<T> {
        debug_assert!(self.keys.known.contains(&key), "{key} is read but not listed as known");
        let Some(value) = value else {
            return if self.misspelt.contains(&key) { Field::Refused } else { Field::Absent };
        };
        match read(&value) {
            Ok(read) => Field::Typed(Typed { value: read, place: value.place }),
            Err(refused) => {
                self.problems.extend(refused.0);
                Field::Refused
            }
        }
    }

    /// Reads a table below this one; `None` if what is there is no table.
    pub fn section<T>(
        &mut self,
        key: &'static str,
        keys: &'static Keys,
        read: impl FnOnce(&mut Section<'a>) -> T,
    ) -> Option<T> {
        debug_assert!(self.keys.known.contains(&key), "{key} is read but not listed as known");
        let (table, place) = match self.value(key) {
            Some(Value { inner: DeValue::Table(table), place, .. }) => (Some(table), place.of_table()),
            Some(other) => {
                self.expect_table(other.inner, other.place);
                return None;
            }
            None if self.misspelt.contains(&key) => return None,
            None => (None, self.place.absent(key)),
        };
        Some(self.descend(keys, table, place, read))
    }

    /// Reads each table below a key that was taken out of this one and whose names are free, in the
    /// order of their names. Each is freed before the next is read, as there may be thousands.
    pub fn each_section(
        &mut self,
        (key, value): Taken<'_>,
        keys: &'static Keys,
        mut read: impl FnMut(&str, &mut Section<'_>),
    ) {
        let outer = self.place.key(key.get_ref(), key.span().start, value.span());
        let names = match value.into_inner() {
            DeValue::Table(names) => names,
            other => return self.expect_table(&other, outer),
        };
        for (name, value) in names {
            let place = outer.key(name.get_ref(), name.span().start, value.span());
            match value.get_ref() {
                DeValue::Table(table) => {
                    self.descend(keys, Some(table), place.of_table(), |section| read(name.get_ref(), section));
                }
                other => self.expect_table(other, place),
            }
        }
    }

    /// A table that is a value, as an element of a list is one, read as a whole.
    pub(super) fn of_element<T>(
        keys: &'static Keys,
        table: &'a DeTable<'a>,
        place: Place,
        read: impl FnOnce(&mut Section<'a>) -> Option<T>,
    ) -> Result<T, Refused> {
        let mut section = Section::new(keys, Some(table), place.of_table());
        let answer = read(&mut section);
        let problems = section.finish();
        answer.filter(|_| problems.is_empty()).ok_or(Refused(problems))
    }

    /// Ends the reading: all problems, those of unknown keys among them.
    pub fn finish(mut self) -> Vec<Problem> {
        for (key, value) in self.table.into_iter().flatten() {
            if !self.keys.known.contains(&key.get_ref().as_ref()) {
                let (wrong, remedy) = self.keys.judge_unknown(key.get_ref());
                // The value stays out: nobody knows whether it is a secret.
                let place = self.place.key(key.get_ref(), key.span().start, value.span()).secret();
                self.problems.push(place.problem(wrong, remedy));
            }
        }
        self.problems
    }

    fn descend<'b, T>(
        &mut self,
        keys: &'static Keys,
        table: Option<&'b DeTable<'b>>,
        place: Place,
        read: impl FnOnce(&mut Section<'b>) -> T,
    ) -> T {
        let mut section = Section::new(keys, table, place);
        let answer = read(&mut section);
        self.problems.extend(section.finish());
        answer
    }

    fn value(&self, key: &'static str) -> Option<Value<'a>> {
        let (typed_key, value) = self.table?.get_key_value(key)?;
        Some(Value::new(key, value.get_ref(), self.place.key(key, typed_key.span().start, value.span())))
    }

    /// Tells that there is something else in the place of a table.
    fn expect_table(&mut self, found: &DeValue<'_>, place: Place) {
        // `database = "postgres://user:password@..."` is such a fault.
        let place = place.secret();
        let remedy = format!("write [{}] and its keys below", place.path());
        self.problems.push(place.problem(format!("expected a table, not {}", kind_of(found)), remedy));
    }
}
