use super::Place;
use crate::config::problem::Problem;

/// A value with the place where it was typed.
#[derive(Clone, Debug)]
pub struct Typed<T> {
    /// The value.
    pub value: T,
    /// The place.
    pub place: Place,
}

/// What became of one key.
///
/// `Refused` is told apart from `Absent`, so that one fault gives one problem: a key with a bad
/// value is not missing, and no default is judged in its place.
#[derive(Clone, Debug, Default)]
pub enum Field<T> {
    /// It is not there.
    #[default]
    Absent,
    /// It is there, and its problem has been told.
    Refused,
    /// It is there.
    Typed(Typed<T>),
}

impl<T> Field<T> {
    /// The value and its place.
    pub fn typed(&self) -> Option<&Typed<T>> {
        match self {
            Self::Typed(typed) => Some(typed),
            Self::Absent | Self::Refused => None,
        }
    }

    /// Whether it is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }

    /// A problem, if it is there though it means nothing without another key, which is not there.
    pub fn needs(&self, key: &str, other: &str) -> Option<Problem> {
        let typed = self.typed()?;
        let (wrong, remedy) = (format!("means nothing without {other}"), format!("write {other}, or remove {key}"));
        Some(typed.place.problem(wrong, remedy).resting_on_others())
    }

    /// Whether its problem has been told.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused)
    }
}

impl<T: Clone> Field<T> {
    /// This one, or the other where this one is absent.
    pub fn or(&self, other: &Self) -> Self {
        if self.is_absent() { other.clone() } else { self.clone() }
    }

    /// Both where both are there, made one by `merge`, which gets this one first; else the one that is there.
    pub fn merged(&self, other: &Self, merge: impl FnOnce(&T, &T) -> T) -> Self {
        match (self, other) {
            (Self::Typed(own), Self::Typed(others)) => {
                Self::Typed(Typed { value: merge(&own.value, &others.value), place: own.place.clone() })
            }
            _ => self.or(other),
        }
    }

    /// The value, if there is a good one.
    pub fn value(&self) -> Option<T> {
        self.typed().map(|typed| typed.value.clone())
    }

    /// The value, or a default; a refused one gets the default too, for its file is refused anyway.
    pub fn value_or(&self, default: T) -> T {
        self.value().unwrap_or(default)
    }
}
