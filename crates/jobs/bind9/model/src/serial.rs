//! Serials that were seen, and the time → the serial that a zone gets next (RFC 1982, RFC 1912 §2.2). It never goes back.

use std::cmp::Ordering;

const HALF: u32 = 1 << 31;

/// Compares two serials as RFC 1982 §3.2 does; nothing where they are exactly half a circle apart.
pub fn compare(one: u32, other: u32) -> Option<Ordering> {
    match one.wrapping_sub(other) {
        0 => Some(Ordering::Equal),
        HALF => None,
        ahead if ahead < HALF => Some(Ordering::Greater),
        _ => Some(Ordering::Less),
    }
}

/// Whether a serial comes after another.
pub fn is_newer(one: u32, than: u32) -> bool {
    compare(one, than) == Some(Ordering::Greater)
}

/// The newest of some serials. Which it is does not depend on their order, as long as they lie within half a circle.
pub fn newest(serials: impl IntoIterator<Item = u32>) -> Option<u32> {
    serials.into_iter().reduce(|one, other| if is_newer(other, one) { other } else { one })
}

/// The serial that a zone gets: the time, as `serial-update-method unixtime` has it, or what its user asked to begin with where that comes
/// later; and in any case one after every serial that was seen of it on any server. A jump that would pass a server by, since more than half
/// the circle lies between, is none: then it is one more than the newest.
pub fn next(seen: impl IntoIterator<Item = u32>, asked: u32, unix_time: u32) -> u32 {
    let seen: Vec<u32> = seen.into_iter().collect();
    let wanted = if is_newer(asked, unix_time) { asked } else { unix_time };
    let follows_all = |serial: u32| seen.iter().all(|one| is_newer(serial, *one));
    match newest(seen.iter().copied()) {
        None => wanted,
        Some(_) if follows_all(wanted) => wanted,
        Some(_) if follows_all(unix_time) => unix_time,
        Some(newest) => newest.wrapping_add(1),
    }
}

/// How far a server is behind another, in steps; 0 where it is not.
pub fn lag(writer: u32, follower: u32) -> u32 {
    if is_newer(writer, follower) { writer.wrapping_sub(follower) } else { 0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn serials_are_compared_on_a_circle() {
        assert_eq!(compare(1, 1), Some(Ordering::Equal));
        assert!(is_newer(0, u32::MAX) && !is_newer(u32::MAX, 0));
        assert_eq!(compare(0, HALF), None);
        assert_eq!((lag(10, 7), lag(7, 10), lag(1, u32::MAX)), (3, 0, 2));
    }

    #[test]
    fn scenario_32_a_zone_that_is_made_anew_begins_after_every_serial_that_was_seen_of_it() {
        assert_eq!(next([4_323, 2], 1, 1_000), 4_324);
        assert_eq!(next([4_323], 1, 1_700_000_000), 1_700_000_000);
        assert_eq!(next([1_800_000_000], 1, 1_700_000_000), 1_800_000_001, "a clock that goes wrong");
    }

    #[test]
    fn a_user_chooses_where_a_zone_begins_and_may_go_ahead_of_the_time() {
        assert_eq!(next([], 2_026_010_100, 1_700_000_000), 2_026_010_100);
        assert_eq!(next([], 1, 1_700_000_000), 1_700_000_000);
        assert_eq!(next([1_700_000_000], 2_026_010_100, 1_700_000_001), 2_026_010_100);
        assert_eq!(next([2_026_010_100], 2_026_010_100, 1_700_000_001), 2_026_010_101);
    }

    proptest! {
        #[test]
        fn the_next_serial_is_after_all_that_were_seen(base: u32, steps in proptest::collection::vec(0..HALF / 2, 1..6), asked: u32, time: u32) {
            let seen: Vec<u32> = steps.iter().map(|step| base.wrapping_add(*step)).collect();

            let next = next(seen.clone(), asked, time);

            for serial in seen {
                // What lies half a circle away is after nothing and before nothing: only a jump of 68 years does that.
                prop_assert!(compare(next, serial) != Some(Ordering::Less) && next != serial, "{} after {}", next, serial);
            }
        }
    }
}
