//! 5.5.5 UpdateWindowedMaxFilter: the greatest of the values of the last `window_length` units of time, this one included.

#[derive(Clone, Debug, Default)]
pub struct MaxFilter(Vec<(u64, f64)>);

impl MaxFilter {
    pub fn update(&mut self, value: f64, time: u64, window_length: u64) -> f64 {
        self.0.retain(|(when, old)| when + window_length > time && *old > value);
        self.0.push((time, value));
        self.0[0].1 // what follows a value is smaller, as larger ones have removed it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_remembers_this_unit_and_those_before_it_in_the_window() {
        let mut filter = MaxFilter::default();
        assert_eq!(filter.update(5.0, 0, 2), 5.0);
        assert_eq!(filter.update(3.0, 1, 2), 5.0);
        assert_eq!(filter.update(1.0, 2, 2), 3.0);
        assert_eq!(filter.update(4.0, 2, 2), 4.0);
        assert_eq!(filter.update(2.0, 2, 1), 4.0);
        assert_eq!(filter.update(1.0, 3, 1), 1.0);
    }
}
