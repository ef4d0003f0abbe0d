/// `a`, `a and b`, `a, b and c`.
pub(in super::super) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Numbers in order, three and more in a row as `a to c`.
pub(super) fn runs(numbers: &[u16], name: impl Fn(u16) -> String) -> String {
    let in_a_row = numbers.chunk_by(|a, b| a + 1 == *b);
    let items: Vec<_> = in_a_row
        .flat_map(|run| match run {
            [first, _, .., last] => vec![format!("{} to {}", name(*first), name(*last))],
            _ => run.iter().map(|number| name(*number)).collect(),
        })
        .collect();
    list(&items)
}

/// Numbers at one distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Progression {
    pub first: u16,
    pub last: u16,
    pub step: u16,
}

impl Progression {
    /// Of four numbers and more: fewer are shorter as a list.
    pub(super) fn of(numbers: &[u16]) -> Option<Self> {
        Self::of_few(numbers).filter(|_| numbers.len() >= 4)
    }

    /// Of two numbers and more.
    pub(super) fn of_few(numbers: &[u16]) -> Option<Self> {
        let [first, second, ..] = *numbers else { return None };
        let step = second - first;
        let is_even = numbers.windows(2).all(|pair| pair[1] - pair[0] == step);
        is_even.then_some(Self { first, last: *numbers.last()?, step })
    }

    /// Whether it goes on at its distance from one round of `length` to the next.
    pub(super) fn goes_around(self, length: u16) -> bool {
        self.first + length - self.last == self.step
    }
}

/// `2nd`.
pub(super) fn ordinal(number: u16) -> String {
    let ending = match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}
