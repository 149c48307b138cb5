//! Serial numbers of zones: which one is newer (RFC 1982).

use std::fmt;

/// The serial number of a zone's version. They run in a circle: there is no greatest, so there is no order, only newer and older.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Serial(pub u32);

impl Serial {
    /// Whether servers that have the other one take this one for news.
    pub fn is_newer_than(self, other: Self) -> bool {
        let ahead = self.0.wrapping_sub(other.0);
        ahead != 0 && ahead < 1 << 31
    }

    /// The next one; servers may leave out 0, so it is left out here.
    pub fn next(self) -> Self {
        Self(self.0.wrapping_add(1).max(1))
    }

    /// The newest of several.
    pub fn newest(serials: impl IntoIterator<Item = Self>) -> Option<Self> {
        serials.into_iter().reduce(|newest, serial| if serial.is_newer_than(newest) { serial } else { newest })
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_is_newer_within_half_the_circle() {
        for (one, other, newer) in [
            (2, 1, true),
            (1, 1, false),
            (1, 2, false),
            (0, u32::MAX, true),
            (1 << 31, 0, false),
            (5, 4_294_967_000, true),
        ] {
            assert_eq!(Serial(one).is_newer_than(Serial(other)), newer, "{one} {other}");
        }
        assert_eq!(Serial(u32::MAX).next(), Serial(1));
        assert_eq!(Serial::newest([3, 4_294_967_295, 7].map(Serial)), Some(Serial(7)));
        assert_eq!(Serial::newest([]), None);
    }
}
