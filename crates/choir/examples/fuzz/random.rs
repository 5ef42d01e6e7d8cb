//! Chance from a seed, and what it does to bytes.

/// A xorshift generator: quick, repeatable, and good enough to break things.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not give neighbouring numbers, and none may be zero.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which may be zero.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 11) as usize % end.max(1)
    }

    pub(crate) fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    fn span(&mut self, length: usize, most: usize) -> std::ops::Range<usize> {
        let start = self.below(length);
        start..(start + 1 + self.below(most)).min(length)
    }

    /// Breaks bytes in one to a few places. `tokens` are put where they may mean something.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>, tokens: &[&str]) {
        for _ in 0..=self.below(4) {
            if bytes.is_empty() {
                bytes.push(self.next() as u8);
            }
            let at = self.below(bytes.len());
            match self.below(8) {
                0 => bytes[at] ^= 1 << self.below(8),
                1 => bytes[at] = self.next() as u8,
                2 => bytes.insert(at, self.next() as u8),
                3 => drop(bytes.drain(self.span(bytes.len(), 40))),
                4 => {
                    let copied = bytes[self.span(bytes.len(), 60)].to_vec();
                    bytes.splice(at..at, copied);
                }
                5 => bytes.truncate(at),
                6 => drop(bytes.splice(at..at, self.pick(tokens).bytes())),
                _ => {
                    let end = at + self.below(12).min(bytes.len() - at);
                    drop(bytes.splice(at..end, self.pick(tokens).bytes()));
                }
            }
        }
    }
}
