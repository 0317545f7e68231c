//! Regions that belong together because they met, directly or through others.

use rustc_hash::FxHashMap;

pub(super) struct Groups {
    /// A region of the same group, which leads on to the one that stands for it; itself if it does.
    parents: FxHashMap<u32, u32>,
}

impl Groups {
    /// Of regions by number. Meetings with regions that are not among them do not count.
    pub(super) fn of(regions: impl Iterator<Item = u32>, met: &[(u32, u32)]) -> Groups {
        let mut groups = Groups { parents: regions.map(|region| (region, region)).collect() };
        for (a, b) in met {
            if groups.parents.contains_key(a) && groups.parents.contains_key(b) {
                let (a, b) = (groups.shorten(*a), groups.shorten(*b));
                groups.parents.insert(a.max(b), a.min(b));
            }
        }
        let regions: Vec<u32> = groups.parents.keys().copied().collect();
        for region in regions {
            let group = groups.shorten(region);
            groups.parents.insert(region, group);
        }
        groups
    }

    /// The region that stands for the group of one; on the way, half of what leads to it is left out.
    fn shorten(&mut self, mut region: u32) -> u32 {
        while let (Some(&parent), Some(&next)) =
            (self.parents.get(&region), self.parents.get(&region).and_then(|parent| self.parents.get(parent)))
            && parent != region
        {
            self.parents.insert(region, next);
            region = next;
        }
        region
    }

    /// The region that stands for the group of one.
    pub(super) fn of_region(&self, region: u32) -> u32 {
        self.parents.get(&region).copied().unwrap_or(region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_met_is_in_one_group() {
        let met = [(1, 2), (5, 4), (4, 2), (7, 8), (9, 1), (3, 100)];
        let groups = Groups::of(1..=9, &met);
        let of = |region| groups.of_region(region);
        assert!([2, 4, 5, 9].iter().all(|region| of(*region) == of(1)));
        assert_eq!(of(7), of(8));
        assert_ne!(of(7), of(1));
        assert_eq!((of(3), of(6)), (3, 6));
    }
}
