/// A set of the numbers of one field: bit `n` is the `n`th from the field's least on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    least: u16,
    bits: [u64; Self::WORDS],
}

impl Numbers {
    /// Years are the most: 131.
    const WORDS: usize = 3;

    /// A set without any number yet; all that come lie less than 192 above `least`.
    pub fn none(least: u16) -> Self {
        Self { least, bits: [0; Self::WORDS] }
    }

    /// Adds a number of the field's range.
    pub fn insert(&mut self, number: u16) {
        let (word, bit) = self.place(number).expect("the field took the number");
        self.bits[word] |= bit;
    }

    /// Leaves those for which `keep` is true.
    pub fn retain(&mut self, keep: impl Fn(u16) -> bool) {
        let all = *self;
        self.bits = [0; Self::WORDS];
        self.extend(all.iter().filter(|number| keep(*number)));
    }

    pub fn contains(&self, number: u16) -> bool {
        self.place(number).is_some_and(|(word, bit)| self.bits[word] & bit != 0)
    }

    pub fn len(&self) -> u32 {
        self.bits.iter().map(|word| word.count_ones()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// From the least to the greatest.
    pub fn iter(self) -> impl Iterator<Item = u16> {
        (self.least..).take(64 * Self::WORDS).filter(move |number| self.contains(*number))
    }

    /// The 64 numbers from the field's least on, one bit each.
    pub fn low_bits(&self) -> u64 {
        self.bits[0]
    }

    fn place(&self, number: u16) -> Option<(usize, u64)> {
        let index = number.checked_sub(self.least)?;
        let word = usize::from(index / 64);
        (word < Self::WORDS).then_some((word, 1 << (index % 64)))
    }
}

impl Extend<u16> for Numbers {
    fn extend<I: IntoIterator<Item = u16>>(&mut self, numbers: I) {
        numbers.into_iter().for_each(|number| self.insert(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_once_and_in_order() {
        let mut years = Numbers::none(1970);
        years.extend([2100, 1970, 2033, 2034, 1970]);
        assert_eq!(years.iter().collect::<Vec<_>>(), [1970, 2033, 2034, 2100]);
        assert_eq!((years.len(), years.is_empty(), years.low_bits()), (4, false, 1 | 1 << 63));
        assert!(years.contains(2034) && !years.contains(2035) && !years.contains(0) && !years.contains(u16::MAX));
        assert!(Numbers::none(0).is_empty());
    }
}
