//! The draws of 5.3.3.8.3: xorshift64*, from a seed, so that a trial can be made again.

#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mixed = (seed ^ (seed >> 30)).wrapping_add(1).wrapping_mul(0xbf58_476d_1ce4_e5b9); // small seeds, too
        Self((mixed ^ (mixed >> 27)) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn int_between_0_and_1(&mut self) -> u64 {
        self.next() >> 63
    }

    pub fn float_between_0_and_1(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
