//! Which regions a round is about.
//!
//! The first rounds are about all regions, later ones about a few: looking through all of them every time would take
//! longer than the work itself.

use super::discover::Region;

#[derive(Debug)]
pub(super) enum Active {
    All,
    /// By number, sorted.
    Only(Vec<u32>),
}

impl Active {
    pub(super) fn only(mut numbers: Vec<u32>) -> Active {
        numbers.sort_unstable();
        numbers.dedup();
        Active::Only(numbers)
    }

    /// The regions with their numbers.
    pub(super) fn pick<'r>(&self, regions: &'r mut [Box<Region>]) -> Vec<(u32, &'r mut Region)> {
        let Active::Only(numbers) = self else {
            return (0..).zip(regions.iter_mut().map(Box::as_mut)).collect();
        };
        let mut picked = Vec::with_capacity(numbers.len());
        let (mut rest, mut first) = (regions, 0);
        for &number in numbers {
            let Some((region, behind)) = rest.get_mut((number - first) as usize..).and_then(<[_]>::split_first_mut)
            else {
                break;
            };
            picked.push((number, &mut **region));
            (rest, first) = (behind, number + 1);
        }
        picked
    }
}

#[cfg(test)]
mod tests {
    use lancet_isa::Svma;

    use super::*;
    use crate::program::Part;

    #[test]
    fn those_that_are_named_are_picked() {
        let region = |start: u64| Region::of_parts(vec![Part { start: Svma(start), end: Svma(start + 1) }]);
        let mut regions: Vec<Box<Region>> = (0..5).map(|start| Box::new(region(start))).collect();
        let mut starts = |active: &Active| {
            let picked = active.pick(&mut regions);
            picked.iter().map(|(number, region)| (*number, region.start().0)).collect::<Vec<_>>()
        };
        assert_eq!(starts(&Active::only(vec![4, 1, 1, 2])), [(1, 1), (2, 2), (4, 4)]);
        assert_eq!(starts(&Active::only(Vec::new())), []);
        assert_eq!(starts(&Active::All).len(), 5);
    }
}
