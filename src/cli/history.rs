use uuid::Uuid;

use crate::job::JobName;
use crate::store::{RunFilter, RunRow, SharedStore, StoreError};
use crate::trigger::RunId;

/// No restriction but a number of rows, newest first.
pub(super) fn newest(limit: u32) -> RunFilter {
    RunFilter { job: None, state: None, since: None, before: None, limit }
}

/// One run by its id: the newest of those before the id that follows it.
pub(super) async fn run_of(store: &SharedStore, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let next = run.as_uuid().as_u128().checked_add(1);
    let before = next.map(|next| RunId::from_uuid(Uuid::from_u128(next)));
    let rows = store.history(&RunFilter { before, ..newest(1) }).await?;
    Ok(rows.into_iter().find(|row| row.run == run))
}

/// The newest run of a job.
pub(super) async fn newest_of(store: &SharedStore, job: &JobName) -> Result<Option<RunRow>, StoreError> {
    Ok(store.history(&RunFilter { job: Some(job.clone()), ..newest(1) }).await?.pop())
}

/// What a beginning of an id names.
#[derive(Debug)]
pub(super) enum Found {
    None,
    One(Box<RunRow>),
    /// More than one run.
    Many,
}

/// The run whose id is, or begins with, what was typed, with dashes or without.
pub(super) async fn find(store: &SharedStore, typed: &str) -> Result<Found, StoreError> {
    let Some((first, last)) = ids(typed) else { return Ok(Found::None) };
    let before = last.checked_add(1).map(|next| RunId::from_uuid(Uuid::from_u128(next)));
    let rows = store.history(&RunFilter { before, ..newest(2) }).await?;
    let mut found = rows.into_iter().filter(|row| row.run.as_uuid().as_u128() >= first);
    Ok(match (found.next(), found.next()) {
        (Some(row), None) => Found::One(Box::new(row)),
        (None, _) => Found::None,
        (Some(_), Some(_)) => Found::Many,
    })
}

/// The first and the last id that begin so.
fn ids(typed: &str) -> Option<(u128, u128)> {
    const DIGITS: usize = 32;
    let digits: String = typed.chars().filter(|c| *c != '-').collect();
    if digits.is_empty() || digits.len() > DIGITS || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let bound = |fill: &str| u128::from_str_radix(&format!("{digits}{}", fill.repeat(DIGITS - digits.len())), 16).ok();
    Some((bound("0")?, bound("f")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_of_an_id_is_a_range_of_ids() {
        let whole = "019a2b3c-4d5e-7f80-8123-456789abcdef";
        let id = Uuid::parse_str(whole).expect("an id").as_u128();
        assert_eq!(ids(whole), Some((id, id)));
        let (first, last) = ids("019a2b3c-4d").expect("hexadecimal digits");
        assert!(first <= id && id <= last && last - first == u128::MAX >> 40);
        assert_eq!(ids("f"), Some((0xf << 124, u128::MAX)));
        for odd in ["", "-", "backup", "019a2b3c-4d5e-7f80-8123-456789abcdef0"] {
            assert_eq!(ids(odd), None, "{odd:?}");
        }
    }
}
