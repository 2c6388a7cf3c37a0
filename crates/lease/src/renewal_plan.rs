//! Which leases travel together: the keeper's decision, without a clock, a store or a task.

use std::ops::Range;

/// The largest chunk in which a lease may travel. It starts at the keeper's chunk, is halved when its chunk trips the time limit, and
/// doubles with each success: one hung row is soon alone, and the rest soon together again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share(usize);

impl Share {
    pub(crate) const fn full(chunk_max: usize) -> Self {
        Self(if chunk_max == 0 { 1 } else { chunk_max })
    }

    /// After a chunk of `len` tripped its limit.
    pub(crate) const fn tripped(self, len: usize) -> Self {
        let from = if len < self.0 { len } else { self.0 };
        Self(if from < 2 { 1 } else { from / 2 })
    }

    /// After a chunk was answered.
    pub(crate) const fn answered(self, chunk_max: usize) -> Self {
        let doubled = self.0.saturating_mul(2);
        if doubled < chunk_max { Self(doubled) } else { Self::full(chunk_max) }
    }
}

/// Cuts leases, given in the order of their keys, into chunks: each is as long as its least share allows.
pub(crate) fn chunks(shares: &[Share]) -> Vec<Range<usize>> {
    let mut cut = Vec::new();
    let (mut start, mut least) = (0, usize::MAX);
    for (index, share) in shares.iter().enumerate() {
        let together = least.min(share.0);
        if index > start && index - start >= together {
            cut.push(start..index);
            (start, least) = (index, share.0);
        } else {
            least = together;
        }
    }
    if start < shares.len() {
        cut.push(start..shares.len());
    }
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn every_lease_travels_once_in_order_and_in_no_more_company_than_it_may(
            shares in prop::collection::vec(1_usize..40, 0..200)
        ) {
            let shares: Vec<Share> = shares.into_iter().map(Share).collect();
            let cut = chunks(&shares);
            let travelled: Vec<usize> = cut.iter().cloned().flatten().collect();
            prop_assert_eq!(travelled, (0..shares.len()).collect::<Vec<_>>());
            for chunk in cut {
                prop_assert!(!chunk.is_empty());
                prop_assert!(shares[chunk.clone()].iter().all(|share| chunk.len() <= share.0));
            }
        }

        #[test]
        fn a_hung_lease_is_alone_after_few_trips_and_the_rest_travel_full_again(
            chunk_max in 1_usize..=1_000, leases in 1_usize..2_500, hung in any::<prop::sample::Index>()
        ) {
            let hung = hung.index(leases);
            let mut shares = vec![Share::full(chunk_max); leases];
            let trips_max = usize::BITS - chunk_max.leading_zeros();
            for _ in 0..trips_max {
                for chunk in chunks(&shares) {
                    let tripped = chunk.contains(&hung);
                    for share in &mut shares[chunk.clone()] {
                        *share = if tripped { share.tripped(chunk.len()) } else { share.answered(chunk_max) };
                    }
                }
            }
            prop_assert!(chunks(&shares).contains(&(hung..hung + 1)));
            for _ in 0..trips_max {
                for chunk in chunks(&shares).into_iter().filter(|chunk| !chunk.contains(&hung)) {
                    shares[chunk].iter_mut().for_each(|share| *share = share.answered(chunk_max));
                }
            }
            let others = shares.iter().enumerate().filter(|(index, _)| *index != hung);
            prop_assert!(others.into_iter().all(|(_, share)| share.0 == chunk_max));
        }
    }

    #[test]
    fn equal_shares_cut_full_chunks() {
        assert_eq!(chunks(&vec![Share::full(1_000); 2_500]), [0..1_000, 1_000..2_000, 2_000..2_500]);
        assert!(chunks(&[]).is_empty());
    }
}
