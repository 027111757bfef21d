//! How many copies of a title: in proportion to its viewers, and steady.

use crate::view::TitleView;
use units::{BitRate, float, rounded};

/// The rules for the number of copies of a title.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CopyRules {
    /// Copies that every title has: two, so that the loss of a node costs no title.
    pub least: u32,
    /// The part of a disk's guaranteed rate that the viewers of one copy should take, from above 0
    /// to 1. `None`: every title has `least` copies. A half leaves a disk room for others, and two
    /// copies are enough for the viewers of one disk.
    pub share: Option<f64>,
    /// Copies beyond `least`, as a part of `least` copies of every title. What popularity leaves of
    /// this goes to the most popular of the titles with `least` copies, one for each: when a node
    /// is lost, two disks take its viewers, and when two are lost, there is a third copy.
    pub extra: f64,
    /// The part by which the number of viewers may change without a change of copies.
    pub hysteresis: f64,
}

impl Default for CopyRules {
    fn default() -> Self {
        Self { least: 2, share: Some(0.5), extra: 0.12, hysteresis: 0.15 }
    }
}

impl CopyRules {
    /// The load, in disks, above which a title has a copy more than `least`, where these are the
    /// loads of all titles.
    pub(super) fn spare_above(&self, loads: impl Iterator<Item = f64>) -> f64 {
        let least = u64::from(self.least.max(1));
        let (mut titles, mut extra) = (0u64, 0u64);
        let mut at_least = Vec::new();
        for load in loads {
            titles += 1;
            match self.of_load(load, f64::INFINITY) as u64 - least {
                0 => at_least.push(load),
                more => extra = extra.saturating_add(more),
            }
        }
        let budget = rounded((float(titles * least) * self.extra.max(0.0)).floor());
        let spare = usize::try_from(budget.saturating_sub(extra)).unwrap_or(usize::MAX);
        if spare == 0 {
            return f64::INFINITY;
        }
        if spare >= at_least.len() {
            return 0.0;
        }
        // The first title that gets none: those that are as popular get none, either.
        at_least.select_nth_unstable_by(spare, |a, b| b.total_cmp(a));
        at_least[spare]
    }

    /// The number of copies wanted on disks of this guaranteed rate, at most one for each of
    /// `disks`: the number that was wanted before, if viewers have not changed by much.
    pub(super) fn copies(
        &self,
        title: &TitleView,
        disk: BitRate,
        spare_above: f64,
        disks: usize,
    ) -> usize {
        let disks_taken = Self::load(title, disk);
        let wanted = |disks_taken: f64| self.of_load(disks_taken, spare_above).min(disks);
        let most = 1.0 + self.hysteresis.max(0.0);
        let before = usize::try_from(title.demand().copies).unwrap_or(usize::MAX);
        if (wanted(disks_taken / most)..=wanted(disks_taken * most)).contains(&before) {
            return before;
        }
        wanted(disks_taken)
    }

    /// The guaranteed rate of how many disks a title's viewers take.
    pub(super) fn load(title: &TitleView, disk: BitRate) -> f64 {
        expected_rate(title) / float(disk.0.max(1))
    }

    /// Copies for viewers who take the guaranteed rate of so many disks; more for more.
    fn of_load(&self, disks_taken: f64, spare_above: f64) -> usize {
        let least = u64::from(self.least.max(1));
        let spare = disks_taken > spare_above;
        let each = self.share.filter(|share| *share > 0.0);
        let shares = each.map_or(0, |share| rounded((disks_taken / share).ceil()));
        usize::try_from(shares.max(least + u64::from(spare))).unwrap_or(usize::MAX)
    }
}

/// The rate of all viewers who are expected of a title.
pub(super) fn expected_rate(title: &TitleView) -> f64 {
    title.demand().viewers * title.size().map_or(0.0, |size| float(size.rate.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::TitleDemand;
    use crate::view::tests::view;

    #[test]
    fn copies_follow_viewers_and_small_changes_move_nothing() {
        let rules = CopyRules { least: 2, share: Some(0.5), extra: 0.0, hysteresis: 0.1 };
        // A disk holds 100 viewers, so a copy should have 50.
        // The rate of its title is 5.
        let disk = BitRate(500);
        let title = |viewers, before| {
            let mut view = view(&[], &[&[]]);
            let copies = u32::try_from(before).unwrap();
            view.expect(crate::TitleNumber(0), TitleDemand { viewers, copies });
            view.title(crate::TitleNumber(0)).clone()
        };
        let of = |viewers, before| rules.copies(&title(viewers, before), disk, f64::INFINITY, 1000);
        let rows = [
            (0.0, 0, 2),
            (100.0, 0, 2),
            (101.0, 0, 3),
            (101.0, 2, 2),
            (109.0, 2, 2),
            (111.0, 2, 3),
            (95.0, 3, 3),
            (90.0, 3, 2),
            (1000.0, 21, 21),
            (900.0, 21, 18),
            (90.0, 1, 2),
            (1e9, 5, 1000),
            (f64::NAN, 0, 2),
        ];
        for (viewers, before, wanted) in rows {
            assert_eq!(of(viewers, before), wanted, "{viewers} viewers, {before} copies");
        }
        // Once moved, the same demand moves nothing more.
        for viewers in 0..3000 {
            let wanted = of(f64::from(viewers), 0);
            assert_eq!(of(f64::from(viewers), wanted), wanted);
        }
        let of = |viewers, before| rules.copies(&title(viewers, before), disk, 0.39, 1000);
        let third = [(39.0, 0), (40.0, 0), (42.0, 2), (45.0, 2), (37.0, 3), (35.0, 3), (151.0, 0)];
        assert_eq!(third.map(|(viewers, before)| of(viewers, before)), [2, 3, 2, 3, 3, 2, 4]);
        let two = CopyRules { share: None, ..rules };
        let many = title(1e6, 7);
        assert_eq!(two.copies(&many, disk, f64::INFINITY, 1000), 2);
        assert_eq!(rules.copies(&many, disk, f64::INFINITY, 0), 0, "no disks");
    }

    #[test]
    fn the_most_popular_of_the_others_get_what_popularity_leaves() {
        // Twenty titles: twelve in a hundred of their copies are 4.
        let rules = CopyRules { least: 2, share: Some(0.5), extra: 0.12, hysteresis: 0.1 };
        let mut loads = vec![1.4, 0.9, 0.8, 0.7, 0.6];
        loads.extend([0.1; 15]);
        let above = rules.spare_above(loads.iter().copied());
        let copies: Vec<usize> = loads.iter().map(|load| rules.of_load(*load, above)).collect();
        assert_eq!(copies[..6], [3, 3, 3, 3, 2, 2], "1 for popularity, and 3");
        let above = rules.spare_above([0.1; 20].into_iter());
        assert_eq!(rules.of_load(0.1, above), 2, "none is more popular");
        let above = rules.spare_above([3.0; 20].into_iter());
        assert_eq!(rules.of_load(3.0, above), 6, "popularity is never cut");
    }
}
