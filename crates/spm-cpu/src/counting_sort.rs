//! A stable counting sort of few items with small keys, such as rows by capped lengths.

/// Calls `put` with the place of each of `count` items, and the item: by ascending `key`, which is below `KEYS`, and items of
/// one key in their order.
#[inline]
pub(crate) fn counting_sort<const KEYS: usize>(
    count: usize,
    key: impl Fn(usize) -> usize,
    mut put: impl FnMut(usize, usize),
) {
    let (mut places, mut first) = ([0_u32; KEYS], 0);
    (0..count).for_each(|item| places[key(item)] += 1);
    places.iter_mut().for_each(|place| first += std::mem::replace(place, first));
    for item in 0..count {
        let place = &mut places[key(item)];
        put(*place as usize, item);
        *place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_one_key_keep_their_order() {
        let keys = [2, 0, 3, 2, 0, 2];
        let mut sorted = [usize::MAX; 6];
        counting_sort::<4>(keys.len(), |item| keys[item], |place, item| sorted[place] = item);
        assert_eq!(sorted, [1, 4, 0, 3, 5, 2]);
        counting_sort::<1>(0, |_| 0, |_, _| panic!("there are no items"));
    }
}
